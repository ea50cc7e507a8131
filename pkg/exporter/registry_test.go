package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// show is what a registry keeps, to be compared.
func show(r *registry) string { return string(r.save().marshal("/dir")) }

// registryCheck compares what a registry has counted with what it has.
func registryCheck(t *testing.T, r *registry) {
	t.Helper()
	var asked, present [maxCluster + 1]int
	var owner [maxCluster + 1]*identity
	insts := map[int32]*identity{}
	for name, id := range r.names {
		if id.name != name {
			t.Errorf("%q is called %q", name, id.name)
		}
		if id.asked != 0 {
			asked[id.asked]++
		}
		if id.present {
			present[id.cluster]++
		}
		if id.own() {
			if owner[id.cluster] != nil {
				t.Errorf("cluster %d has two owners", id.cluster)
			}
			owner[id.cluster] = id
		}
		if id.inst >= 0 {
			if insts[id.inst] != nil {
				t.Errorf("instance %d twice", id.inst)
			}
			insts[id.inst] = id
		}
	}
	present[0], asked[0] = r.present[0], r.asked[0]
	if asked != r.asked || present != r.present || owner != r.owner || len(insts) != len(r.insts) {
		t.Error("the counts are not those of the names")
	}
	if len(r.indoms) != len(r.numbers) {
		t.Errorf("%d indoms have %d numbers", len(r.indoms), len(r.numbers))
	}
	for key, d := range r.indoms {
		if d.key != key || r.numbers[d.number] != d || d.number == 0 || d.number > maxSerial {
			t.Errorf("indom %v is %v", key, d)
		}
	}
	for i := int32(0); i < r.inst; i++ {
		if r.insts[i] == nil {
			t.Errorf("instance %d is free, below %d", i, r.inst)
		}
	}
	for n := uint32(maxSerial); n > r.number; n-- {
		if r.numbers[n] == nil {
			t.Errorf("number %d is free, above %d", n, r.number)
		}
	}
}

// TestRegistry does random things and checks after each that the registry is
// in order, and the same after being saved.
func TestRegistry(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // repeatable
		r := newRegistry()
		for range 300 {
			r.counter++
			id := r.name(fmt.Sprint("f", rnd.IntN(30)))
			asked := uint32(rnd.IntN(4))
			switch rnd.IntN(7) {
			case 0, 1:
				r.appear(id)
				r.reserve(id, asked)
				if asked == 0 || !r.claim(asked) {
					asked = id.asked
					n, err := r.free()
					if err != nil {
						t.Fatal(err)
					}
					r.give(id, asked, n)
				} else {
					r.give(id, asked, asked)
				}
			case 2:
				r.leave(id)
			case 3:
				r.instance(id)
			case 4:
				key := indomKey{uint32(1 + rnd.IntN(5)), uint32(1 + 0x800*rnd.IntN(3)), ""}
				if rnd.IntN(4) == 0 {
					key.file = id.name
				}
				n, ok := r.indom(key)
				if again, _ := r.indom(key); !ok || n != again {
					t.Errorf("indom %v has number %d, then %d", key, n, again)
				}
			case 5:
				if !id.present {
					r.forget(id)
				}
			case 6:
				s := show(r)
				again, err := unmarshal([]byte(s), "/dir")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s, show(again)); diff != "" {
					t.Errorf("saved and read (-want +got):\n%s", diff)
				}
				registryCheck(t, again)
			}
			registryCheck(t, r)
			if t.Failed() {
				t.Fatal("seed", seed)
			}
		}
	}
}

// What is kept of names and indoms is bounded; those go that have been absent
// longest.
func TestRegistryIsBounded(t *testing.T) {
	r := newRegistry()
	for i := range maxNames + 500 {
		r.counter++
		id := r.name(fmt.Sprintf("f%05d", i))
		r.appear(id)
		r.give(id, uint32(i%maxCluster+1), uint32(i%maxCluster+1))
		r.instance(id)
		r.leave(id)
		for k := range 5 {
			if _, ok := r.indom(indomKey{uint32(i%maxCluster + 1), uint32(1 + i/maxCluster*10 + k), ""}); !ok {
				t.Fatal("no number")
			}
		}
	}
	registryCheck(t, r)
	if len(r.names) != maxNames || len(r.indoms) != maxInDoms || !r.evicted {
		t.Errorf("%d names, %d indoms", len(r.names), len(r.indoms))
	}
	if r.names["f00499"] != nil || r.names["f00500"] == nil {
		t.Error("not the longest absent ones have gone")
	}
	if _, err := unmarshal(r.save().marshal("/d"), "/d"); err != nil {
		t.Error(err)
	}
}

// There may be more files than names are kept of when they are gone. They all
// have a number; what is saved can be read.
func TestRegistryBeyondItsBounds(t *testing.T) {
	r := newRegistry()
	r.counter++
	for i := range maxNames + 100 {
		id := r.name(strconv.Itoa(i))
		r.appear(id)
		r.give(id, 5, 5)
	}
	for i := range uint32(maxInDoms + 100) {
		if _, ok := r.indom(indomKey{5, i + 1, ""}); !ok {
			t.Fatal("no number")
		}
	}
	registryCheck(t, r)
	if len(r.names) != maxNames+100 || len(r.indoms) != maxInDoms+100 {
		t.Errorf("%d names, %d indoms", len(r.names), len(r.indoms))
	}
	again, err := unmarshal(r.save().marshal("/d"), "/d")
	if err != nil {
		t.Fatal(err)
	}
	registryCheck(t, again)
	if len(again.names) != maxNames || len(again.indoms) != maxInDoms {
		t.Errorf("saved: %d names, %d indoms", len(again.names), len(again.indoms))
	}
}

// What is saved can be read however long the names are.
func TestSavedSize(t *testing.T) {
	r := newRegistry()
	r.counter = 1 << 62
	long := strings.Repeat("\xff", 250)
	for i := range maxNames {
		id := r.name(fmt.Sprintf("%05d%s", i, long))
		r.appear(id)
		r.give(id, 5, 5)
	}
	for i := range uint32(maxInDoms) {
		if _, ok := r.indom(indomKey{5, i + 1, fmt.Sprintf("%05d%s", i, long)}); !ok {
			t.Fatal("no number")
		}
	}
	if data := r.save().marshal("/d"); len(data) > maxIdentityFile {
		t.Errorf("%d bytes are saved, %d are read", len(data), maxIdentityFile)
	}
}

// When all numbers of indoms are taken there is none.
func TestNoInDomNumber(t *testing.T) {
	r := newRegistry()
	r.number = 3
	for _, n := range []uint32{4, canonical(1, 7)} { // as if all from 4 on were taken
		r.numbers[n] = &indomIdentity{number: n}
	}
	for i := range uint32(3) {
		if n, ok := r.indom(indomKey{1, i + 1, "f"}); !ok || n != 3-i {
			t.Errorf("number %d, %v", n, ok)
		}
	}
	if n, ok := r.indom(indomKey{1, 7, ""}); ok {
		t.Errorf("number %d", n)
	}
}

// Who is there when the registry is saved was there last then.
func TestSavedPresence(t *testing.T) {
	r := newRegistry()
	for i, n := range []string{"gone", "there"} {
		r.counter++
		id := r.name(n)
		r.appear(id)
		r.give(id, 0, uint32(i+1))
		r.indom(indomKey{uint32(i + 1), 5, ""})
	}
	r.counter++
	r.leave(r.names["gone"])
	r.counter = 100
	again, err := unmarshal(r.save().marshal("/d"), "/d")
	if err != nil {
		t.Fatal(err)
	}
	got := []uint64{again.saved, again.names["gone"].last, again.names["there"].last, again.indoms[indomKey{1, 5, ""}].last, again.indoms[indomKey{2, 5, ""}].last}
	if diff := cmp.Diff([]uint64{100, 3, 100, 3, 100}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Changes are gathered before they are written.
func TestKeeperGathers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "identities")
	synctest.Test(t, func(t *testing.T) {
		var calls, quiet atomic.Int64
		k := &keeper{path: path, dir: "/d", event: func(ev Event) { t.Error(ev) }, failed: func() { t.Error("failed") }}
		k.content = func(bool) *savedIdentities {
			n := calls.Add(1)
			if quiet.Load() > 0 {
				return nil
			}
			return &savedIdentities{counter: uint64(n)}
		}
		r := k.load(false)
		if !k.empty || len(r.names) != 0 || k.lock == nil {
			t.Fatal("load")
		}
		k.start()
		begin := time.Now()
		for range 1000 {
			k.save()
		}
		time.Sleep(time.Second) // two times saveDelay at the most, and then some
		synctest.Wait()
		if n := calls.Load(); n < 1 || n > 2 {
			t.Errorf("written %d times", n)
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "\ncounter ") {
			t.Errorf("after %v: %q, %v", time.Since(begin), data, err)
		}
		was := calls.Load()
		time.Sleep(time.Hour)
		if calls.Load() != was {
			t.Error("written without a cause")
		}
		quiet.Store(1)
		k.close()
		if calls.Load() != was+1 {
			t.Error("not asked at the end")
		}
	})
}

func FuzzUnmarshal(f *testing.F) {
	r := newRegistry()
	r.counter = 7
	for i, n := range []string{"a", "b\n\x00\xff\"", "ünï"} {
		id := r.name(n)
		r.give(id, uint32(i), uint32(5*i+1))
		r.appear(id)
		r.instance(id)
	}
	r.indom(indomKey{1, 2, ""})
	r.indom(indomKey{1, 2, "a"})
	f.Add([]byte(show(r)))
	f.Add([]byte(show(newRegistry())))
	f.Add([]byte("pmdammv identities 1\ndirectory \"/dir\"\ncounter 3\n\n# x\nfile 1 1 2 3 1 9 \"x\"\nindom 1 5 6 2 \"\"\nend\n"))
	f.Add([]byte("pmdammv identities 1\ndirectory \"/other\"\ncounter 3\nend\n"))
	f.Add([]byte("pmdammv identities 2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := unmarshal(data, "/dir")
		if (r == nil) != (err != nil) {
			t.Fatalf("%v and %v", r, err)
		}
		if err != nil {
			if errors.Is(err, errDamaged) == errors.Is(err, errForeign) {
				t.Errorf("neither damaged nor foreign: %v", err)
			}
			return
		}
		if r.inst == 0 && r.number == maxSerial {
			registryCheck(t, r)
		}
		s := r.save().marshal("/dir")
		again, err := unmarshal(s, "/dir")
		if err != nil {
			t.Fatalf("%v:\n%s", err, s)
		}
		if b := again.save().marshal("/dir"); !bytes.Equal(s, b) {
			t.Errorf("from\n%s\nto\n%s", s, b)
		}
	})
}
