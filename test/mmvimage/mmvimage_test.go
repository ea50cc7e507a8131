package mmvimage_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/test/mmvimage"
)

// TestBytesV1 lays the smallest useful file out by hand.
func TestBytesV1(t *testing.T) {
	got := mmvimage.New(1).Cluster(5).Flags(mmvimage.Process).PID(-2).Generations(7, 8).ByteOrder(binary.LittleEndian).
		Metric(mmvimage.Metric{
			Name: "m", Item: 3, Type: mmvimage.I32, Sem: mmvimage.Instant, InDom: -1, Units: 0x100000,
			Values: []mmvimage.Value{mmvimage.Int32(-1)},
		}).Build()

	var want []byte
	u32 := func(v uint32) { want = binary.LittleEndian.AppendUint32(want, v) }
	u64 := func(v uint64) { want = binary.LittleEndian.AppendUint64(want, v) }
	want = append(want, "MMV\x00"...)
	u32(1)          // version
	u64(7)          // generation 1
	u64(8)          // generation 2
	u32(2)          // TOC entries
	u32(2)          // flags
	u32(0xfffffffe) // pid
	u32(5)          // cluster
	u32(3)          // metrics
	u32(1)          // entries
	u64(72)         // offset
	u32(4)          // values
	u32(1)          // entries
	u64(72 + 104)   // offset
	want = append(want, "m"...)
	want = append(want, make([]byte, 63)...)
	u32(3)          // item
	u32(0)          // type
	u32(3)          // semantics
	u32(0x100000)   // units
	u32(0xffffffff) // indom
	u32(0)          // padding
	u64(0)          // one-line help
	u64(0)          // help
	u32(0xffffffff) // value
	u32(0)          // the rest of the slot
	u64(0)          // extra
	u64(72)         // metric
	u64(0)          // instance
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func full(version int32) *mmvimage.Image {
	return mmvimage.New(version).Cluster(321).Flags(mmvimage.NoPrefix).
		InDom(7, "disks", "all disks", mmvimage.Inst{ID: 0, Name: "sda"}, mmvimage.Inst{ID: 9, Name: "sdb"}).
		Metric(mmvimage.Metric{
			Name: "disk.reads", Item: 1, Type: mmvimage.U64, Sem: mmvimage.Counter, InDom: 7, Short: "reads",
			Values: []mmvimage.Value{mmvimage.None(), mmvimage.Uint(18446744073709551615)},
		}).
		Metric(mmvimage.Metric{
			Name: "state", Item: 2, Type: mmvimage.String, Sem: mmvimage.Discrete, Help: "what it does",
			Values: []mmvimage.Value{mmvimage.Text("idle")},
		}).
		Metric(mmvimage.Metric{
			Name: "load", Item: 3, Type: mmvimage.Double, Sem: mmvimage.Instant,
			Values: []mmvimage.Value{mmvimage.Float64(0.5)},
		}).
		Metric(mmvimage.Metric{Name: "silent", Item: 4, Type: mmvimage.Float, Values: mmvimage.NoValues()})
}

// TestLayout follows the offsets in the image and expects to find what the layout says.
func TestLayout(t *testing.T) {
	for version := int32(1); version <= 3; version++ {
		for _, gap := range []int{0, 3} {
			m := full(version).Gap(gap)
			if version == 3 {
				m.Label(mmvimage.LabelItem, 2, -1, `{"a":1}`)
			}
			b, l := m.Build(), m.Layout()
			if uint64(len(b)) != l.Size {
				t.Fatalf("v%d gap %d: %d bytes, layout says %d", version, gap, len(b), l.Size)
			}
			eq := func(what string, got, want uint64) {
				t.Helper()
				if got != want {
					t.Errorf("v%d gap %d: %s is %d, want %d", version, gap, what, got, want)
				}
			}
			eq("offset in the TOC of values", mmvimage.GetU64(b, l.Section(mmvimage.SecValues)+mmvimage.TOCOffset), l.Values)
			eq("values' gap", l.Values-l.Metric(l.NumMetrics), uint64(gap))
			eq("number of values", uint64(mmvimage.GetU32(b, l.Section(mmvimage.SecValues)+mmvimage.TOCCount)), 3)
			eq("indom's first instance", mmvimage.GetU64(b, l.InDom(0)+mmvimage.InDomOffset), l.Instance(0))
			eq("second instance's id", uint64(mmvimage.GetU32(b, l.Instance(1)+mmvimage.InstInternal)), 9)
			eq("first value's metric", mmvimage.GetU64(b, l.Value(0)+mmvimage.ValueMetric), l.Metric(0))
			eq("first value's instance", mmvimage.GetU64(b, l.Value(0)+mmvimage.ValueInst), l.Instance(1))
			eq("second value's instance", mmvimage.GetU64(b, l.Value(1)+mmvimage.ValueInst), 0)
			eq("third metric's item", uint64(mmvimage.GetU32(b, l.MetricFields(2)+mmvimage.MetricItem)), 3)
			last := l.String(l.NumStrings - 1)
			eq("the text value's string", mmvimage.GetU64(b, l.Value(1)+mmvimage.ValueExtra), last)
			if got := string(b[last : last+5]); got != "idle\x00" {
				t.Errorf("v%d: the last string is %q", version, got)
			}
			if version == 3 {
				if got := string(b[l.Label(0)+mmvimage.LabelPayload:][:7]); got != `{"a":1}` {
					t.Errorf("label's payload is %q", got)
				}
			}
		}
	}
}

// TestDump lets PCP's own mmvdump read the images. Only what every release of it prints alike is compared.
func TestDump(t *testing.T) {
	const mmvdump = "/usr/lib/pcp/pmdas/mmv/mmvdump"
	if _, err := os.Stat(mmvdump); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("needs mmvdump of the package pcp: %v", err)
	}
	for version := int32(1); version <= 3; version++ {
		m := full(version)
		want := []string{
			"Cluster    = 321", "Flags      = 0x1 (noprefix)",
			"2 instances, starting at offset", "shorttext=disks", "helptext=all disks",
			`instance = [0 or "sda"]`, `instance = [9 or "sdb"]`,
			"disk.reads\n       type=64-bit unsigned int (0x3), sem=counter (0x1), pad=0x0", "indom=7", "shorttext=reads",
			"state\n       type=string (0x6), sem=discrete (0x4), pad=0x0", "helptext=what it does",
			`disk.reads[9 or "sdb"] = 18446744073709551615`, `state = "idle"`, "load = 0.500000",
		}
		if version == 3 {
			m.Label(mmvimage.LabelInstances|mmvimage.LabelOptional, 7, 9, `{"bus":"sata"}`)
			want = append(want, `{"bus":"sata"}`, "flags=0xa0, identity=0x7", "internal=0x9")
		}
		dir := t.TempDir()
		if err := mmvimage.Write(filepath.Join(dir, "image"), m.Build()); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), mmvdump, "image")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("mmvdump: %v\n%s", err, out)
		}
		for _, w := range want {
			if !strings.Contains(string(out), w) {
				t.Errorf("v%d: mmvdump does not print %q:\n%s", version, w, out)
			}
		}
		if n := strings.Count(string(out), "instance = ["); n != 2 {
			t.Errorf("v%d: mmvdump prints %d instances, want 2", version, n)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("Write left %v behind (%v)", left, err)
		}
	}
}
