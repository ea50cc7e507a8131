package test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// list runs `pmdammv list` beside a pmcd, on the same files.
func (p *pmcd) list(t testing.TB, args ...string) string {
	t.Helper()
	out, err := p.client(t, must[string](t)(agentPath()), append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// changing are the values that are not the same in two agents or at two times.
var changing = regexp.MustCompile(`(?m)(^mmv\.(?:control\.reloads|running\.now).*\n(?:.+\n)*? +value ).*`)

// TestList: `pmdammv list` prints what pminfo prints with pmcd's help.
func TestList(t *testing.T) {
	t.Parallel()
	p := startPMCD(t)
	for name, image := range goodImages() {
		write(t, filepath.Join(p.mmv, name), image)
	}
	write(t, filepath.Join(p.mmv, "bad-name"), goodImages()["auto1"])
	p.pminfo(t, "-f", "mmv.control.files")
	for _, line := range []string{
		"mmv", "-d mmv", "-f mmv", "-l mmv", "-m mmv", "-t mmv", "-T mmv", "-dfmtTl mmv", "-tm mmv",
		"-f mmv.full1 mmv.full3", "-dT 70.18.1", "-tlT mmv.words 70.36865", "-lT 70.1",
	} {
		args := strings.Fields(line)
		want := withoutHost(t, p.pminfo(t, args...))
		got := withoutHost(t, p.list(t, args...))
		if d := diff(changing.ReplaceAllString(want, "${1}X"), changing.ReplaceAllString(got, "${1}X")); d != "" {
			t.Errorf("%q (-pminfo +list)\n%s", args, d)
		}
		if !strings.Contains(got, "\n") {
			t.Errorf("%q: %q", args, got)
		}
	}
}

// TestScrape: `pmdammv list --prometheus` gives scrapers the series that
// pmproxy gives them, but for the labels that pmcd adds.
func TestScrape(t *testing.T) {
	t.Parallel()
	pmproxy := filepath.Join(conf(t, "PCP_BINADM_DIR"), "pmproxy")
	need(t, pmproxy)
	p := startPMCD(t)
	for name, image := range goodImages() {
		write(t, filepath.Join(p.mmv, name), image)
	}
	want, wantLabels := series(t, p.scrape(t, pmproxy))
	got, labels := series(t, p.list(t, "--prometheus", "mmv"))
	if d := diff(strings.Join(want, "\n"), strings.Join(got, "\n")); d != "" {
		t.Errorf("(-pmproxy +list)\n%s", d)
	}
	if len(got) < 60 {
		t.Errorf("only %d series", len(got))
	}
	pcp6 := strings.HasPrefix(conf(t, "PCP_VERSION"), "6.") // whose pmproxy has no labels of clusters
	for s, want := range wantLabels {
		if got := labels[s]; len(got) < len(want) || !pcp6 && len(got) > len(want) {
			t.Errorf("%s has the labels %q, with pmproxy %q", s, got, want)
		}
		for _, l := range want {
			if !slices.Contains(labels[s], l) {
				t.Errorf("%s has the labels %q, with pmproxy %q", s, labels[s], want)
			}
		}
	}
}

// scrape gives what pmproxy, started for it, answers a scraper.
func (p *pmcd) scrape(t testing.TB, pmproxy string) string {
	t.Helper()
	port := freePort(t)
	config := filepath.Join(p.dir, "pmproxy.conf")
	text := "[pmproxy]\nhttp.enabled = true\nredis.enabled = false\nresp.enabled = false\nsecure.enabled = false\n[discover]\nenabled = false\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(p.dir, "pmproxy.log")
	proxy := p.client(t, pmproxy, "-f", "-A", "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-c", config, "-l", log,
		"-s", filepath.Join(p.dir, "run", "pmproxy.socket"), "-U", me(t))
	proxy.Dir = p.dir
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- proxy.Wait() }()
	defer func() {
		_ = proxy.Process.Kill()
		if err := <-ended; err == nil { // it is killed here
			t.Error("pmproxy ended by itself")
		}
	}()
	url := fmt.Sprintf("http://127.0.0.1:%d/metrics?names=mmv&host=127.0.0.1:%d", port, p.port)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if r, err := http.Get(url); err == nil { //nolint:gosec,noctx // of our own making
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err == nil && r.StatusCode == http.StatusOK {
				return string(body)
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("pmproxy ended: %v\n%s", err, must[[]byte](t)(os.ReadFile(log)))
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("pmproxy does not answer\n%s", must[[]byte](t)(os.ReadFile(log)))
		}
	}
}

// ofHost are labels that pmcd adds, or that pmproxy of some releases does not ask for.
var ofHost = []string{"agent", "domainname", "groupid", "hostname", "machineid", "userid"}

var (
	scrapeMeta   = regexp.MustCompile(`(?m)^# (TYPE|HELP) (\S+) (.*)$`)
	scrapeSample = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)
	scrapeLabel  = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*")`)
)

// series are those in a scrape, sorted, and their labels but for those of the host.
func series(t testing.TB, text string) (all []string, labels map[string][]string) {
	t.Helper()
	meta := map[string]string{}
	for _, m := range scrapeMeta.FindAllStringSubmatch(text, -1) {
		meta[m[1]+m[2]] = m[3]
	}
	labels = map[string][]string{}
	for _, m := range scrapeSample.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if name == "mmv_control_reloads" || name == "mmv_running_now" {
			continue // not the same in two agents, or at two times
		}
		var own []string
		inst := ""
		for _, l := range scrapeLabel.FindAllStringSubmatch(m[2], -1) {
			if l[1] == "instid" {
				inst = l[2]
			}
			if !slices.Contains(ofHost, l[1]) {
				own = append(own, l[0])
			}
		}
		slices.Sort(own)
		value := must[float64](t)(strconv.ParseFloat(m[3], 64))
		s := fmt.Sprintf("%s %s %s %g %q", name, meta["TYPE"+name], inst, value, meta["HELP"+name])
		labels[s] = own
		all = append(all, s)
	}
	slices.Sort(all)
	return all, labels
}
