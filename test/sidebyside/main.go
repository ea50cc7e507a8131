// Command sidebyside measures this agent beside PCP's own on the same MMV
// files, playing pmcd to both over pipes, and prints a table of ratios.
//
//	go run ./test/sidebyside [-agent FILE] [-pcp FILE] [-rounds N] [SET...]
//	go run ./test/sidebyside -write DIR SET
//
// For each set of files it starts the two agents in turn, -rounds times, and
// takes medians:
//
//	start      from exec to the first complete list of names
//	traverse   that list again
//	fetch-all  one fetch of all metrics
//	fetch-one  one fetch of one metric
//	reload     the first fetch after one more file has appeared
//
// "pipe" is the floor under the fetches: a child that answers each request
// with as many ready-made bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"pmdammv/test/mmvimage"
)

// set is a directory of regular files.
type set struct {
	name                      string
	files, metrics, instances int
	rounds, ones              int // fetches of one metric in a round
}

var sets = []set{
	{"small", 1, 10, 0, 5, 2000},
	{"one1000", 1, 1000, 0, 5, 2000},
	{"files100", 100, 100, 0, 5, 2000},
	{"files200", 200, 1000, 0, 3, 500},
	{"files1000", 1000, 10, 0, 3, 1000},
	{"inst1kx20", 20, 20, 1000, 3, 200},
	{"inst10k", 1, 10, 10000, 3, 10},
}

func main() {
	if s := os.Getenv("SIDEBYSIDE_FLOOR"); s != "" {
		n, err := strconv.Atoi(s)
		exitOn(err)
		exitOn(floor(n))
		return
	}
	agent := flag.String("agent", "bin/pmdammv", "the agent")
	pcp := flag.String("pcp", "/usr/lib/pcp/pmdas/mmv/pmdammv", "PCP's agent; left out if it is not there")
	rounds := flag.Int("rounds", 0, "rounds, if not each set's own number")
	write := flag.String("write", "", "only write the set's files, below `DIR`/mmv")
	flag.Parse()
	path, err := filepath.Abs(*agent)
	exitOn(err)
	commands := []string{path}
	if _, err := os.Stat(*pcp); err == nil {
		commands = append(commands, *pcp)
	}
	fmt.Printf("%s %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, s := range sets {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), s.name) {
			continue
		}
		if *write != "" {
			exitOn(s.write(*write))
			continue
		}
		if *rounds > 0 {
			s.rounds = *rounds
		}
		exitOn(s.measure(commands))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "sidebyside: %v\n", err)
		os.Exit(1)
	}
}

// write makes the files of the set below dir/mmv.
func (s set) write(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "mmv"), 0o755); err != nil { //nolint:gosec // a directory of the test
		return err
	}
	for i := range s.files {
		img := mmvimage.New(1).Cluster(int32(1 + i%4000))
		m := mmvimage.Metric{Type: mmvimage.U64, Sem: mmvimage.Counter, Short: "short help", Help: "long help text"}
		if s.instances > 0 {
			insts := make([]mmvimage.Inst, s.instances)
			for k := range insts {
				insts[k] = mmvimage.Inst{ID: int32(k), Name: fmt.Sprintf("inst-%05d", k)}
			}
			img, m.InDom = img.InDom(1, "short help", "long help text", insts...), 1
		}
		for k := range s.metrics {
			m.Name, m.Item, m.Values = fmt.Sprintf("m.n%04d", k), uint32(k+1), nil
			for v := range max(s.instances, 1) {
				m.Values = append(m.Values, mmvimage.Int(int64(1000000+v)))
			}
			img = img.Metric(m)
		}
		if err := mmvimage.Write(filepath.Join(dir, "mmv", fmt.Sprintf("f%d", i)), img.Build()); err != nil {
			return err
		}
	}
	return nil
}

// figures are the medians of one agent.
type figures struct {
	start, traverse, all, one, reload []time.Duration
	rss                               int
}

func (s set) measure(commands []string) error {
	dir, err := os.MkdirTemp("", "sidebyside-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	if err := s.write(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "config", "pmda"), 0o755); err != nil { //nolint:gosec // a directory of the test
		return err
	}
	fs := make([]figures, len(commands))
	var pipeAll, pipeOne []time.Duration
	for range s.rounds {
		var all, one, metrics int
		for k, c := range commands {
			if all, one, metrics, err = s.round(&fs[k], c, dir); err != nil {
				return fmt.Errorf("%s: %s: %w", s.name, c, err)
			}
		}
		a, o, err := bare(all, one, metrics, s.ones)
		if err != nil {
			return err
		}
		pipeAll, pipeOne = append(pipeAll, a...), append(pipeOne, o)
	}
	s.print(fs, median(pipeAll), median(pipeOne))
	return nil
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}

func (s set) print(fs []figures, pipeAll, pipeOne time.Duration) {
	fmt.Printf("\n%s: %d files of %d metrics, %d instances\n", s.name, s.files, s.metrics, s.instances)
	fmt.Printf("%-10s %11s %11s %11s %11s %11s %9s\n", "", "start", "traverse", "fetch-all", "fetch-one", "reload", "RSS kB")
	var m [2][5]time.Duration
	for k, f := range fs {
		m[k] = [5]time.Duration{median(f.start), median(f.traverse), median(f.all), median(f.one), median(f.reload)}
		fmt.Printf("%-10s", []string{"pmdammv", "PCP's"}[k])
		for _, d := range m[k] {
			fmt.Printf(" %11v", d.Round(10*time.Nanosecond))
		}
		fmt.Printf(" %9d\n", f.rss)
	}
	fmt.Printf("%-10s %11s %11s %11v %11v\n", "pipe", "", "", pipeAll, pipeOne)
	if len(fs) == 2 {
		fmt.Printf("%-10s", "ratio")
		for i := range m[0] {
			fmt.Printf(" %11.3f", float64(m[0][i])/float64(m[1][i]))
		}
		fmt.Printf(" %9.2f\n", float64(fs[0].rss)/float64(fs[1].rss))
	}
	fmt.Printf("%-10s %11s %11s %11.2f %11.2f\n", "to pipe", "", "", float64(m[0][2])/float64(pipeAll), float64(m[0][3])/float64(pipeOne))
}
