package check

// kind is what there is to say of every finding of one Code.
type kind struct {
	code          Code
	severity      Severity
	agent, writer string
}

// What the agent does, where several kinds share it.
const (
	rejects    = "rejects the whole file"
	ignores    = "ignores it"
	waits      = "waits: looks again by itself, and exports the file once it is complete"
	notMetric  = "does not export this metric"
	notInst    = "does not export this instance"
	noValue    = "gives no value for it"
	noText     = "says that there is no text"
	endsText   = "takes the text to end where its room does"
	asIs       = "exports it as it is"
	firstOnly  = "uses the first one and ignores the others"
	noLabel    = "leaves the label out"
	leavesFile = "leaves the file alone"
)

// kinds has every Code, and is never changed. The texts are shown after "agent:"
// and "writer:". An array, unlike a map, costs the agent nothing at its start.
var kinds = [...]kind{
	// The file as a whole.
	{"not-mmv", Error, leavesFile, "keep files of other kinds out of the directory; if it should be an MMV file, see what has written it"},
	{"truncated", Error, waits, "give the file its full size before anything else is written to it"},
	{"in-flux", Error, waits, "write generation 2 last, equal to generation 1 and not 0; a file that stays like this was left by a program that died: remove it"},
	{"version", Error, rejects, "write version 1, 2 or 3"},
	{"byte-order", Error, rejects, "write the file on a machine of the same kind: MMV files have the byte order of their host"},
	{"rejected", Error, rejects, "see what the agent says"},
	{"entry-unused", Error, ignores, "see what the agent says"},
	{"toc-count", Error, rejects, "write a table of contents with at least a metrics and a values section, all of it inside the file"},
	{"cluster-range", Error, rejects, "ask for a cluster from 1 to 4095, or 0 to have one chosen"},
	{"pid-range", Error, rejects, "write the process id of the program, or clear the flag PROCESS"},
	{"flags-unknown", Warning, ignores, "set only the flags 1 (NOPREFIX), 2 (PROCESS) and 4 (SENTINEL)"},

	// Table of contents.
	{"section-missing", Error, rejects, "write a metrics and a values section; either may have 0 entries"},
	{"section-count", Error, rejects, "write the number of entries, 0 or more"},
	{"section-outside", Error, rejects, "let the section lie inside the file: size the file first, then compute offsets"},
	{"section-ignored", Error, "ignores the section", "let the section lie inside the file, with its number of entries, 0 or more"},
	{"section-unknown", Warning, "ignores the section", "use the section types 1 to 6"},
	{"section-version", Warning, "ignores the section", "write version 3 to have labels"},
	{"section-twice", Error, "uses the first section of that type", "write one section of each type"},
	{"section-overlap", Warning, "reads both as they are", "let sections lie one after the other"},
	{"values-unaligned", Warning, asIs + "; a value may be seen half changed", "let values begin at multiples of 8 bytes"},
	{"trailing", Warning, ignores, "let the file end with its last section"},
	{"no-metrics", Warning, "has nothing to export", "register metrics before the file is written"},
	{"instances-twice", Error, rejects, "give every indom instances of its own"},
	{"indom-outside", Error, "takes the indom to be empty", "let the instances of the indom lie inside the file"},
	{"indom-twice", Error, firstOnly, "give every indom a serial of its own; if serials are hashes of names, two names have one: rename one"},
	{"indom-zero", Warning, "exports it, but no metric can refer to it: there 0 means none", "use serials from 1 on"},
	{"indom-collision", Warning, "gives the later one a number of its own, for good", "use small serials that differ in their low 11 bits"},
	{"instance-name", Error, notInst, "give the instance a name"},
	{"instance-id", Error, notInst, "use instance numbers other than -1, which means none"},
	{"instance-twice", Error, firstOnly, "give every instance of an indom a number of its own"},
	{"instance-alike", Warning, "exports both; clients that ask by name get the first", "let names of instances differ up to their first space"},
	{"instance-indom", Warning, "goes by the indom's own list", "write the offset of the indom to which the instance belongs"},
	{"name-unterminated", Error, endsText, "end names with a NUL"},

	// Metrics.
	{"name-missing", Error, notMetric, "write the offset of a string with the metric's name"},
	{"name-characters", Error, notMetric, "use names of letters, digits and _, with single dots between them"},
	{"name-digit", Warning, asIs + "; some clients take only names whose parts begin with a letter", "let each part of a name begin with a letter"},
	{"name-reserved", Warning, notMetric, "choose a name that does not begin with control, or drop the flag NOPREFIX"},
	{"name-twice", Error, firstOnly, "give every metric a name of its own"},
	{"name-below-leaf", Warning, notMetric, "a name cannot be a metric and a branch: rename one of the two"},
	{"item-range", Warning, notMetric, "use items from 0 to 1023: a PMID has 10 bits for it"},
	{"item-twice", Warning, notMetric, "give every metric an item of its own; if items are hashes of names, two names have one: rename one"},
	{"type-unknown", Error, notMetric, "use the types 0 to 6 and 9"},
	{"type-none", Warning, "exports it, always without a value", "use a type from 0 to 6, or 9"},
	{"semantics-none", Warning, "takes it to be a counter", "write 1 (counter), 3 (instant) or 4 (discrete)"},
	{"semantics", Warning, asIs, "write 1 (counter), 3 (instant) or 4 (discrete)"},
	{"elapsed", Warning, "exports it as a counter in microseconds", "describe metrics of type ELAPSED as counters in microseconds"},
	{"indom-unknown", Error, "exports it without values", "write an indom with that serial, or 0 for none"},
	{"no-value", Warning, "exports it without a value", "write a value entry for the metric"},
	{"text-outside", Error, noText, "let the text lie inside the file, or write 0 for none"},
	{"text-unended", Error, endsText, "end strings with a NUL: 255 bytes are the most"},
	{"value-metric", Error, "leaves the value out", "write the offset of the value's metric, which must be the start of an entry"},
	{"value-instance", Error, "leaves the value out", "write the offset of an instance of the metric's indom"},
	{"value-twice", Error, "uses the first value of each", "write one value for each metric and instance"},
	{"string-outside", Error, noValue + " while it is so", "let the value's extra field be the offset of a string inside the file"},
	{"elapsed-running", Warning, "takes it that nothing is being timed", "let the extra field be 0, or minus the time at which the section began"},
	{"label-flags", Error, noLabel, "say with the flags what the label is for: 4 indom, 8 cluster, 16 item or 32 instances"},
	{"label-json", Error, noLabel, `write one label as a JSON object: {"name":value}`},
	{"label-unended", Error, endsText, "end the label with a NUL: 243 bytes are the most"},
	{"label-of-nothing", Warning, "keeps the label, but nothing has it", "let the identity be the item, the indom's serial or the header's cluster, as the flags say"},

	// The file among others, and on this machine.
	{"file-name", Warning, rejects, "name the file with letters, digits, _ and single dots only; or start the agent with --sanitize-names"},
	{"file-reserved", Warning, rejects, "choose a name whose first part is not control"},
	{"no-cluster", Warning, rejects, "remove files that nobody needs: there are 4095 numbers"},
	{"writer-gone", Warning, "does not export the file while it is so", "let the program run; or clear the flag PROCESS if its metrics should outlive it"},
	{"writer-unmapped", Warning, "exports the file all the same", "see whether that process is still the one that wrote the file"},
	{"permission", Warning, "cannot read the file: exports it once that changes", "let the agent's user read the file: chmod a+r, or umask 022 in the program"},
	{"directory-access", Warning, "cannot see the files", "let the agent's user search every directory on the way, and read this one: chmod a+rx"},
	{"hidden", Warning, "does not look at files whose names begin with a dot", "rename it when it is complete"},
	{"not-regular", Warning, "does not look at anything but regular files and links to them", "put MMV files into the directory itself"},
	{"dangling", Warning, "waits for the file to which the link leads", "mend or remove the link"},
	{"too-big", Warning, rejects, "write less, or start the agent with a larger --max-file-size"},
	{"too-many", Warning, rejects, "remove files that nobody needs, or start the agent with a larger --max-files"},
	{"cluster-moved", Warning, "gives the file another cluster, for good", "ask for a cluster of one's own, or 0 to have one chosen"},
	{"name-taken", Warning, notMetric, "files with the flag NOPREFIX share all names, and so do those whose own names become one with --sanitize-names: choose others"},
	{"pmid-taken", Warning, notMetric, "ask for a cluster of one's own, or 0 to have one chosen; or use items that no other file of the cluster has"},
	{"not-exported", Warning, notMetric, "see what the agent says"},
	{"instance-names", Warning, "gives the later file an indom of its own, and leaves the instance out of metrics that both have", "give an instance the same name in all files of a cluster"},
	{"empty", Warning, "has nothing to export", "see where the program writes its file: it may have another PCP_TMP_DIR"},
	{"not-configured", Warning, "is not asked for anything", "add a line for mmv to pmcd's configuration and let pmcd read it again: kill -HUP"},
	{"directory", Error, "has nothing to export, and looks again at every request", "make the directory, or see whether PCP_TMP_DIR is right; the agent and the programs must have the same"},
	{"unreadable", Error, "may be another user: this is what the one who runs the check sees", "run the check as root or as the agent's user"},
}

// kindOf returns the kind of a code; there is one for each that is used.
func kindOf(code Code) kind {
	for _, k := range kinds {
		if k.code == code {
			return k
		}
	}
	panic("check: no such kind: " + string(code))
}
