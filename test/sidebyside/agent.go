package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pmdammv/pkg/pcpwire"
	"pmdammv/test/mmvimage"
)

// agent is a running agent, or something that answers like one.
type agent struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	buf  []byte
	body []byte // of the last reply
	kind pcpwire.PDUType
}

func spawn(cmd *exec.Cmd) (*agent, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &agent{cmd: cmd, in: in, out: bufio.NewReaderSize(out, 1<<20)}, cmd.Start()
}

// startAgent starts an agent on dir and exchanges credentials with it.
func startAgent(command, dir string) (*agent, error) { //nolint:gosec // the test chooses it
	cmd := exec.Command(command, "-d", "70", "-U", strconv.Itoa(os.Getuid()), "-l", filepath.Join(dir, "agent.log"))
	if strings.HasPrefix(command, "/usr/lib/pcp") { // which knows users by name only
		cmd.Args[4] = userName()
	}
	cmd.Env = append(os.Environ(), "PCP_TMP_DIR="+dir, "PCP_VAR_DIR="+dir, "PCP_LOG_DIR="+dir)
	cmd.Dir = dir
	a, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	if err := a.read(); err != nil || a.kind != pcpwire.PDUCreds {
		return nil, fmt.Errorf("no credentials: %w", err)
	}
	return a, a.send(pcpwire.NewCreds(0))
}

func userName() string {
	if u := os.Getenv("USER"); u != "" {
		return u
	}
	return "root"
}

func (a *agent) send(p pcpwire.PDU) (err error) {
	if a.buf, err = pcpwire.AppendPDU(a.buf[:0], 0, p); err == nil {
		_, err = a.in.Write(a.buf)
	}
	return err
}

// read reads a reply into memory that is used again.
func (a *agent) read() error {
	var h [pcpwire.HeaderSize]byte
	if _, err := io.ReadFull(a.out, h[:]); err != nil {
		return err
	}
	a.kind = pcpwire.PDUType(binary.BigEndian.Uint32(h[4:]))
	n := int(binary.BigEndian.Uint32(h[:])) - len(h)
	if cap(a.body) < n {
		a.body = make([]byte, n)
	}
	a.body = a.body[:n]
	_, err := io.ReadFull(a.out, a.body)
	return err
}

// call sends a request that is encoded already and reads the reply.
func (a *agent) call(request []byte) error {
	if _, err := a.in.Write(request); err != nil {
		return err
	}
	return a.read()
}

func (a *agent) ask(p, reply pcpwire.PDU) error {
	if err := a.send(p); err != nil {
		return err
	}
	if err := a.read(); err != nil {
		return err
	}
	if a.kind != reply.PDUType() {
		return fmt.Errorf("%v in answer to %v", a.kind, p.PDUType())
	}
	return reply.Decode(a.body)
}

func (a *agent) stop() error {
	_ = a.in.Close()
	return a.cmd.Wait()
}

// rss is the resident set in kB.
func (a *agent) rss() (kb int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			_, _ = fmt.Sscan(string(v), &kb)
		}
	}
	return kb
}

func fetchPDU(ids []pcpwire.PMID) []byte {
	b, err := pcpwire.AppendPDU(nil, 0, &pcpwire.Fetch{PMIDs: ids})
	exitOn(err)
	return b
}

// round measures one agent once. all and one are the sizes of the replies.
func (s set) round(f *figures, command, dir string) (all, one, metrics int, err error) {
	since := time.Now()
	took := func() time.Duration { d := time.Since(since); since = time.Now(); return d }
	a, err := startAgent(command, dir)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, a.stop()) }()
	var names pcpwire.Names
	root := &pcpwire.Traverse{Name: []byte("mmv")}
	if err := a.ask(root, &names); err != nil {
		return 0, 0, 0, err
	}
	f.start = append(f.start, took())
	if err := a.send(root); err != nil {
		return 0, 0, 0, err
	}
	if err := a.read(); err != nil {
		return 0, 0, 0, err
	}
	f.traverse = append(f.traverse, took())
	ids, err := a.pmids(names.Names)
	if err != nil {
		return 0, 0, 0, err
	}
	if len(ids) != s.files*s.metrics {
		return 0, 0, 0, fmt.Errorf("%d metrics instead of %d", len(ids), s.files*s.metrics)
	}
	request := fetchPDU(ids)
	for n, spent := 0, time.Duration(0); n < 3 || n < 300 && spent < 300*time.Millisecond; n++ {
		took()
		if err := a.call(request); err != nil {
			return 0, 0, 0, err
		}
		d := took()
		f.all, spent = append(f.all, d), spent+d
	}
	all = len(a.body) + pcpwire.HeaderSize
	ones := make([][]byte, min(len(ids), 100))
	for i := range ones {
		ones[i] = fetchPDU(ids[i*len(ids)/len(ones):][:1])
	}
	took()
	for i := range s.ones {
		if err := a.call(ones[i%len(ones)]); err != nil {
			return 0, 0, 0, err
		}
	}
	f.one = append(f.one, took()/time.Duration(s.ones))
	one = len(a.body) + pcpwire.HeaderSize
	extra := mmvimage.New(1).Cluster(4050).Metric(mmvimage.Metric{Name: "x", Item: 1, Type: mmvimage.U64, Sem: mmvimage.Instant, Values: []mmvimage.Value{mmvimage.Int(1)}})
	path := filepath.Join(dir, "mmv", "zz")
	if err := mmvimage.Write(path, extra.Build()); err != nil {
		return 0, 0, 0, err
	}
	took()
	err = a.call(ones[0])
	f.reload = append(f.reload, took())
	_ = os.Remove(path)
	f.rss = a.rss()
	return all, one, len(ids), err
}

// pmids asks for the identifiers of all names but the agent's own.
func (a *agent) pmids(names [][]byte) (ids []pcpwire.PMID, err error) {
	own := make([][]byte, len(names)) // the reply's memory is used again
	for i, n := range names {
		own[i] = bytes.Clone(n)
	}
	var reply pcpwire.IDs
	for _, n := range own {
		if bytes.HasPrefix(n, []byte("mmv.control.")) {
			continue
		}
		if err := a.ask(&pcpwire.Names{Names: [][]byte{n}}, &reply); err != nil {
			return nil, err
		}
		ids = append(ids, reply.IDs[0])
	}
	return ids, nil
}

// bare measures the exchange of as many bytes with a child that has them ready.
func bare(all, one, metrics, ones int) ([]time.Duration, time.Duration, error) {
	exchange := func(size, pmids, times int) ([]time.Duration, error) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), fmt.Sprintf("SIDEBYSIDE_FLOOR=%d", size))
		a, err := spawn(cmd)
		if err != nil {
			return nil, err
		}
		request := fetchPDU(make([]pcpwire.PMID, pmids))
		var d []time.Duration
		for range times + 1 {
			since := time.Now()
			if err := a.call(request); err != nil {
				return nil, err
			}
			d = append(d, time.Since(since))
		}
		return d[1:], a.stop()
	}
	a, err := exchange(all, metrics, 20)
	if err != nil {
		return nil, 0, err
	}
	o, err := exchange(one, 1, ones)
	return a, median(o), err
}

// floor is that child.
func floor(size int) error {
	in, out := bufio.NewReader(os.Stdin), make([]byte, size)
	binary.BigEndian.PutUint32(out, uint32(size))
	binary.BigEndian.PutUint32(out[4:], uint32(pcpwire.PDUResult))
	for {
		var h [4]byte
		if _, err := io.ReadFull(in, h[:]); err != nil {
			return nil //nolint:nilerr // the end
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(h[:])) - len(h)); err != nil {
			return err
		}
		if _, err := os.Stdout.Write(out); err != nil {
			return err
		}
	}
}
