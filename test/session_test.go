package test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pmidText  = regexp.MustCompile(`(?m)^ +(70\.(\d+)\.\d+)$`)
	indomText = regexp.MustCompile(`InDom: (70\.\d+) `)
	instText  = regexp.MustCompile(`inst: (-?\d+) name: "(.*)"`)
)

// questions are the commands that ask an agent for all it knows of the metrics below a node. The agent is asked for
// their names and numbers.
func questions(d *dbpmda, t testing.TB, node string) []string {
	t.Helper()
	ask := []string{"children " + node, "traverse " + node, "pmid " + node, "pmid " + node + ".nosuch", "fetch " + node}
	nodes, clusters, indoms := map[string]bool{node: true}, map[string]bool{}, map[string]bool{}
	names := d.traverse(t, node)
	for _, name := range names {
		for i, r := range name {
			if r == '.' && i > len(node) && !nodes[name[:i]] {
				nodes[name[:i]] = true
				ask = append(ask, "children "+name[:i], "traverse "+name[:i], "pmid "+name[:i])
			}
		}
		ask = append(ask, "pmid "+name, "desc "+name, "fetch "+name, "text "+name, "label item "+name, "children "+name)
		if m := pmidText.FindStringSubmatch(d.ask(t, "pmid "+name)); m != nil {
			ask = append(ask, "name "+m[1])
			clusters["70."+m[2]] = true
		}
		if m := indomText.FindStringSubmatch(d.ask(t, "desc "+name)); m != nil {
			indoms[m[1]] = true
		}
	}
	if len(names) > 0 {
		ask = append(ask, "fetch "+strings.Join(names, " "))
	}
	for _, c := range sorted(clusters) {
		ask = append(ask, "label cluster "+c, "name "+c+".1022", "desc "+c+".1022", "fetch "+c+".1022", "text "+c+".1022")
	}
	for _, indom := range sorted(indoms) {
		ask = append(ask, "instance "+indom, "instance "+indom+" 77777", "instance "+indom+` "nosuch"`,
			"text indom "+indom, "label indom "+indom, "label instances "+indom)
		for _, m := range instText.FindAllStringSubmatch(d.ask(t, "instance "+indom), -1) {
			first, _, _ := strings.Cut(m[2], " ")
			if id := m[1]; !strings.HasPrefix(id, "-") { // dbpmda knows no negative numbers
				ask = append(ask, "instance "+indom+" "+id)
			}
			ask = append(ask, fmt.Sprintf("instance %s %q", indom, m[2]), fmt.Sprintf("instance %s %q", indom, first))
		}
	}
	return ask
}

func sorted(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}

// profiles are the commands that ask for a metric's values with every kind of profile of its indom. They leave none.
func profiles(d *dbpmda, t testing.TB, name string) []string {
	t.Helper()
	m := indomText.FindStringSubmatch(d.ask(t, "desc "+name))
	if m == nil {
		t.Fatalf("%s has no indom", name)
	}
	indom, fetch := m[1], "fetch "+name
	ask := []string{"profile " + indom + " none", fetch, "label instances " + indom}
	var ids []string
	for _, m := range instText.FindAllStringSubmatch(d.ask(t, "instance "+indom), -1) {
		if !strings.HasPrefix(m[1], "-") {
			ids = append(ids, m[1])
		}
	}
	slices.Reverse(ids)
	for _, id := range ids {
		ask = append(ask, "profile "+indom+" add "+id, fetch, "label instances "+indom)
	}
	ask = append(ask, "profile "+indom+" all", fetch)
	for _, id := range ids {
		ask = append(ask, "profile "+indom+" delete "+id, fetch)
	}
	return append(ask, "profile "+indom+" all", fetch)
}

// errands are commands that are about no metric of a file in particular.
func errands() []string {
	return []string{
		"label context", "label domain", "label cluster 70.999", "label indom 70.999", "label instances 70.999",
		"label item 70.999.1", "name 70.999.1", "desc 70.999.1", "fetch 70.999.1", "text 70.999.1", "text indom 70.999",
		"instance 70.999", "children mmv.nosuch", "traverse mmv.nosuch", "pmid mmv.nosuch",
		"fetch mmv.control.reload mmv.control.debug mmv.control.files", "name 70.0.0", "name 70.0.1", "name 70.0.2",
		`store mmv.control.debug "1"`, "fetch mmv.control.debug", `store mmv.control.debug "0"`, "fetch mmv.control.debug",
		`store mmv.control.files "1"`, `store mmv.control.reload "0"`, `store mmv.control.reload "1"`,
		"fetch mmv.control.reload mmv.control.files",
		`attr 11 "0"`, `attr "username" "tanya"`,
	}
}
