package reader_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pmdammv/pkg/reader"
)

// hostile says of each file in testdata/hostile what Parse makes of it: what
// is wrong with it as a whole, or the names of its metrics, how many values
// each has, and what is remarked. The files are named for what is odd in them.
var hostile = map[string]struct {
	fatal   *remark
	metrics string // name/values, in file order
	insts   string // of its indoms
	remarks []remark
}{
	// what rejects a file
	"cluster_5000":            {fatal: &remark{reader.SectionHeader, -1, "cluster", 36, reader.ErrRange}},
	"empty":                   {fatal: &remark{reader.SectionHeader, -1, "", 0, reader.ErrTruncated}},
	"truncated_39":            {fatal: &remark{reader.SectionHeader, -1, "", 0, reader.ErrTruncated}},
	"g2_zero":                 {fatal: &remark{reader.SectionHeader, -1, "generation", 8, reader.ErrInFlux}},
	"toc_metrics_count_neg":   {fatal: &remark{reader.SectionTOC, 0, "count", 44, reader.ErrCount}},
	"toc_metrics_offset_wrap": {fatal: &remark{reader.SectionTOC, 0, "offset", 48, reader.ErrBounds}},
	"toc_values_count_max":    {fatal: &remark{reader.SectionTOC, 1, "offset", 64, reader.ErrBounds}},
	"tocs_0":                  {fatal: &remark{reader.SectionHeader, -1, "toc count", 24, reader.ErrCount}},
	"tocs_1":                  {fatal: &remark{reader.SectionHeader, -1, "toc count", 24, reader.ErrCount}},
	"tocs_neg":                {fatal: &remark{reader.SectionHeader, -1, "toc count", 24, reader.ErrCount}},
	"version_bigendian":       {fatal: &remark{reader.SectionHeader, -1, "version", 4, reader.ErrVersion}},

	// what costs a part of it
	"inst_name_empty":                 {metrics: "one/0", remarks: []remark{{reader.SectionInstances, 0, "name", 168, reader.ErrNoName}}},
	"shorttext_wrap":                  {metrics: "one/1", remarks: []remark{{reader.SectionMetrics, 0, "shorttext", 176, reader.ErrBounds}}},
	"toc_strings_count_max":           {metrics: "one/1", remarks: []remark{{reader.SectionTOC, 2, "offset", 80, reader.ErrBounds}}},
	"toc_strings_count_neg":           {metrics: "one/1", remarks: []remark{{reader.SectionTOC, 2, "count", 76, reader.ErrCount}}},
	"toc_unknown_type":                {metrics: "one/1", remarks: []remark{{reader.SectionTOC, 2, "type", 72, reader.ErrRange}}},
	"unknown_indom":                   {metrics: "m/0 ok/1", remarks: []remark{{reader.SectionMetrics, 0, "indom", 168, reader.ErrReference}}},
	"v2_inst_name_oob":                {metrics: "one/0", remarks: []remark{{reader.SectionInstances, 0, "name", 168, reader.ErrNoName}}},
	"value_metric_points_into_header": {metrics: "one/0", insts: "x", remarks: []remark{{reader.SectionValues, 0, "metric", 352, reader.ErrReference}}},

	// what is for whoever names, types and serves the metrics, or only live
	"dup_item":                  {metrics: "m/1 n/1 big/1"},
	"elapsed_running":           {metrics: "t/1"},
	"empty_indom":               {metrics: "m/0 k/1"},
	"indom_or_collision":        {metrics: "m5/2 m805/2", insts: "five0 five1 big0 big7"},
	"label_unterminated":        {metrics: "one/1"},
	"leaf_and_nonleaf":          {metrics: "x/1 x.y/1"},
	"name_0":                    {metrics: "1abc/1 zz/1"},
	"name_1":                    {metrics: ".x/1 zz/1"},
	"name_4":                    {metrics: "a-b/1 zz/1"},
	"name_5":                    {metrics: "x y/1 zz/1"},
	"name_6":                    {metrics: "/1 zz/1"},
	"ok_v1_simple":              {metrics: "one/1"},
	"ok_v2_indom":               {metrics: "one/2", insts: "x y"},
	"ok_v3_labels":              {metrics: "one/2", insts: "x y"},
	"sem_-1":                    {metrics: "one/1"},
	"sem_0":                     {metrics: "one/1"},
	"sem_2":                     {metrics: "one/1"},
	"sentinels":                 {metrics: "i32lo/1 i32full/1 i64/1 str/1 d/1"},
	"string_extra_wrap":         {metrics: "s/1"},
	"string_unterminated":       {metrics: "s/1"},
	"toc_values_before_metrics": {metrics: "one/1"},
	"trailing_byte":             {metrics: "one/1"},
	"type_-1":                   {metrics: "ptr/1 bad/1"},
	"type_11":                   {metrics: "ptr/1 bad/1"},
	"type_7":                    {metrics: "ptr/1 bad/1"},
	"type_77":                   {metrics: "ptr/1 bad/1"},
	"v1_inst_name_unterminated": {metrics: "one/1", insts: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
	"v3_labels_cluster_auto":    {metrics: "one/2", insts: "x y"},
	"v3_labels_cluster_ge_2048": {metrics: "one/2", insts: "x y"},
	"zero_metrics":              {},
}

func TestHostileFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*.mmv")
	if err != nil || len(files) != len(hostile) {
		t.Fatalf("%d files, %d in the table (%v)", len(files), len(hostile), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".mmv")
		t.Run(name, func(t *testing.T) {
			want, ok := hostile[name]
			if !ok {
				t.Fatal("not in the table")
			}
			image, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			c, err := reader.Parse(image)
			if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 { // the files are little endian
				if c != nil || err == nil {
					t.Errorf("catalog %v, error %v", c, err)
				}
				return
			}
			if want.fatal != nil {
				if c != nil || err == nil {
					t.Fatalf("catalog %v, error %v", c, err)
				}
				if diff := cmp.Diff(*want.fatal, remarkOf(formatError(t, err)), sentinels); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			walk(t, c, len(image))
			v := viewOf(c)
			var metrics, insts []string
			for _, m := range v.Metrics {
				metrics = append(metrics, m.Name+"/"+string(rune('0'+len(m.Values))))
			}
			for _, d := range v.InDoms {
				for _, in := range d.Instances {
					insts = append(insts, in.Name)
				}
			}
			if diff := cmp.Diff(want.metrics, strings.Join(metrics, " ")); diff != "" {
				t.Errorf("metrics (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(want.insts, strings.Join(insts, " ")); diff != "" {
				t.Errorf("instances (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(want.remarks, v.Remarks, sentinels); diff != "" {
				t.Errorf("remarks (-want +got)\n%s", diff)
			}
		})
	}
}
