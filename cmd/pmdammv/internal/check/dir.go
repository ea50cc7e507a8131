package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pmdammv/cmd/pmdammv/internal/image"
	"pmdammv/cmd/pmdammv/internal/local"
	"pmdammv/pkg/exporter"
	"pmdammv/pkg/reader"
)

// Options say which agent is meant.
type Options struct {
	Agent exporter.Options // Dir is the directory
	User  string           // that the agent runs as, by name or number; if there is none, whether it can read files is not judged
	Limit int              // findings of one kind in a file; 0: all
	Other []string         // directories where files may be instead
}

// Report is what is found in one directory, or in one file alone.
type Report struct {
	Directory string    `json:"directory"` // "" for a file alone
	Note      string    `json:"note,omitempty"`
	Files     []File    `json:"files"`
	Findings  []Finding `json:"findings"` // about the directory itself
}

// Skipped is the state of what the agent does not look at; the other states are
// those of package reader.
const Skipped = "skipped"

// File is what is found of one file.
type File struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`
	State    string    `json:"state"`    // loaded, pending, rejected, dead or skipped
	Reason   string    `json:"reason"`   // what the agent says of one that is not loaded
	Root     string    `json:"root"`     // of its names, such as mmv.shop
	PMID     string    `json:"pmid"`     // its domain and cluster, such as 70.5; "" for none
	Metrics  int       `json:"metrics"`  // in the file
	Exported int       `json:"exported"` // of these
	Findings []Finding `json:"findings"`
	Omitted  int       `json:"omitted"` // further findings, of kinds that are listed often enough

	walk      *walk
	file      *reader.File
	forbidden bool // to the agent's user
}

// Status is the exit status that fits the report: 0 for nothing found, 1 for
// warnings, 2 for errors.
func (r *Report) Status() int {
	status := worst(r.Findings)
	for i := range r.Files {
		status = max(status, worst(r.Files[i].Findings))
	}
	return status
}

func worst(found []Finding) int {
	status := 0
	for i := range found {
		status = max(status, map[Severity]int{Warning: 1, Error: 2}[found[i].Severity])
	}
	return status
}

// Directory looks at all files of a directory, as the agent does.
func Directory(o Options) (*Report, error) {
	r := &Report{Directory: o.Agent.Dir, Files: []File{}, Findings: []Finding{}}
	entries, err := os.ReadDir(o.Agent.Dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		r.Findings = append(r.Findings, fileFinding("unreadable", "%v", err))
	case err != nil:
		r.Findings = append(r.Findings, fileFinding("directory", "%v%s", err, elsewhere(o)))
	case len(entries) == 0:
		r.Findings = append(r.Findings, fileFinding("empty", "there are no files in it%s", elsewhere(o)))
	}
	u, _ := findUser(o.User) // where there is none, as without PCP, nothing is judged
	r.Findings = append(r.Findings, u.directory(o.Agent.Dir)...)
	if err != nil {
		return r, nil
	}
	for _, e := range entries {
		r.Files = append(r.Files, newFile(o, u, e.Name()))
	}
	return r, r.ask(o)
}

// Alone looks at a file as if it were the only one in the agent's directory.
func Alone(o Options, path string) (*Report, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	o.Agent.Dir, err = os.MkdirTemp("", "pmdammv-check.")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(o.Agent.Dir) //nolint:errcheck // there is nothing to be done about it
	link := filepath.Join(o.Agent.Dir, filepath.Base(path))
	if err := os.Symlink(abs, link); err != nil {
		return nil, err
	}
	o.Agent.Identities = ""
	r := &Report{Files: []File{newFile(o, nil, filepath.Base(path))}, Findings: []Finding{}}
	err = r.ask(o)
	r.Files[0].Path = path
	for i := range r.Files[0].Findings {
		f := &r.Files[0].Findings[i]
		f.Problem = strings.ReplaceAll(f.Problem, link, path)
	}
	return r, err
}

// newFile looks at the file itself.
func newFile(o Options, u *agentUser, name string) File {
	f := File{Name: name, Path: filepath.Join(o.Agent.Dir, name), State: Skipped, Findings: []Finding{}}
	if f.skipped() {
		return f
	}
	f.Findings = append(f.Findings, u.file(f.Path)...)
	f.forbidden = len(f.Findings) > 0
	limit := o.Agent.Reader.MaxFileSize
	if limit <= 0 {
		limit = image.MaxSize
	}
	data, err := image.Read(f.Path, limit)
	switch {
	case errors.Is(err, image.ErrTooBig):
		f.add("too-big", "%v", errors.Unwrap(err))
	case err != nil:
		f.add("unreadable", "%v", err)
	default:
		w := &walk{list: list{max: o.Limit}}
		w.all(data)
		f.walk, f.Metrics, f.Omitted = w, len(w.metrics), w.omitted
		f.Findings = append(f.Findings, w.found...)
	}
	return f
}

// skipped tells whether the agent does not look at the file at all.
func (f *File) skipped() bool {
	if strings.HasPrefix(f.Name, ".") {
		f.add("hidden", "its name begins with a dot")
		return true
	}
	st, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if to, err := os.Readlink(f.Path); err == nil {
			f.add("dangling", "a link to %q, which is not there", to)
		}
	case err != nil: // reading it says why
		return false
	case st.IsDir():
		f.add("not-regular", "a directory")
	case !st.Mode().IsRegular():
		f.add("not-regular", "not a regular file: mode %v", st.Mode())
	default:
		return false
	}
	return true
}

func (f *File) add(code Code, format string, args ...any) {
	f.Findings = append(f.Findings, fileFinding(code, format, args...))
}

// ask asks the agent what it makes of the files.
func (r *Report) ask(o Options) error {
	dir, err := reader.Open(o.Agent.Dir, o.Agent.Reader)
	if err != nil {
		return err
	}
	defer dir.Close()
	o.Agent.FileMetrics = exporter.FileMetricsAll
	ctx, err := local.Open(o.Agent)
	if err != nil {
		return err
	}
	defer ctx.Close()
	snap := dir.Look()
	dir.Acquire()
	defer dir.Release()
	r.states(snap)
	return ctx.Look(func() error { return r.exported(ctx) })
}

// states takes in what has become of each file.
func (r *Report) states(snap *reader.Snapshot) {
	byName := map[string]*File{}
	for i := range r.Files {
		byName[r.Files[i].Name] = &r.Files[i]
	}
	for _, l := range snap.Files {
		if f := byName[l.Name]; f != nil {
			f.State, f.file = reader.Loaded.String(), l
			if !l.Held && l.Unmapped() {
				f.add("writer-unmapped", "process %d, which it names as its writer, does not map it", l.Catalog.Header.Process)
			}
		}
	}
	for _, e := range snap.Others {
		f := byName[e.Name]
		if f == nil {
			continue
		}
		f.State, f.Reason, f.file = e.State.String(), e.Err.Error(), nil
		f.explain(e)
	}
}

// explain makes sure that there is a finding for a file that is not loaded.
func (f *File) explain(e reader.Entry) {
	switch {
	case e.State == reader.Dead:
		f.add("writer-gone", "%v", e.Err)
	case errors.Is(e.Err, reader.ErrTooMany):
		f.add("too-many", "%v", e.Err)
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, fs.ErrPermission): // told
	case worst(f.Findings) < 2 && !slices.ContainsFunc(f.Findings, func(x Finding) bool { return x.Code == "too-big" }):
		f.add("rejected", "%s", fmt.Sprint(e.Err))
	}
}
