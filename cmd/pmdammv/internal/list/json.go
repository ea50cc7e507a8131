package list

import (
	"encoding/json"
	"io"

	"pmdammv/pkg/pcpwire"
)

// document is a metric in JSON.
type document struct {
	Name      string          `json:"name"`
	PMID      string          `json:"pmid"`
	InDom     *string         `json:"indom"` // null: the metric has no instances
	Type      string          `json:"type"`  // as pmTypeStr: 32, U32, 64, U64, FLOAT, DOUBLE, STRING, NO_SUPPORT
	Semantics string          `json:"semantics"`
	Units     string          `json:"units"` // "" for none
	OneLine   *string         `json:"oneline"`
	Help      *string         `json:"help"`
	Labels    json.RawMessage `json:"labels"`
	Error     *string         `json:"error"` // why there are no values
	Values    []valueDocument `json:"values"`
}

// valueDocument is a value in JSON.
type valueDocument struct {
	Instance *int32          `json:"instance"` // null: the metric has no instances
	Name     *string         `json:"instance_name"`
	Value    any             `json:"value"`  // number, text, or "NaN", "+Inf", "-Inf"
	Labels   json.RawMessage `json:"labels"` // of the instance and everything wider
}

// writeJSON writes the metrics as one array.
func writeJSON(w io.Writer, metrics []metric) error {
	docs := make([]document, 0, len(metrics))
	for i := range metrics {
		if metrics[i].err == nil {
			docs = append(docs, newDocument(&metrics[i]))
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(docs)
}

func newDocument(m *metric) document {
	d := document{
		Name: m.name, PMID: m.pmid.String(), Type: m.desc.Type.String(), Semantics: m.desc.Semantics.String(), Units: m.desc.Units.String(),
		OneLine: m.oneline.orNull(), Help: m.help.orNull(), Labels: m.labels.json(), Values: []valueDocument{},
	}
	if m.desc.InDom != pcpwire.InDomNull {
		s := m.desc.InDom.String()
		d.InDom = &s
	}
	if m.values.Err != nil {
		s := m.values.Err.Error()
		d.Error = &s
	}
	for _, v := range m.values.Values {
		x := valueDocument{Value: number(v.Atom), Labels: d.Labels}
		if d.InDom != nil {
			x.Instance = &v.Inst
			if i, ok := m.byID[v.Inst]; ok {
				x.Name = &m.insts[i].Name
				x.Labels = m.insts[i].labels.json()
			}
		}
		d.Values = append(d.Values, x)
	}
	return d
}

func (t text) orNull() *string {
	if t.err != nil {
		return nil
	}
	return &t.text
}

// json is the set as an object. What is not JSON all through (a value may be
// anything that libpcp takes) is left out.
func (l labels) json() json.RawMessage {
	if l.err != nil || len(l.set.Labels) == 0 || !json.Valid(l.set.JSON) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(l.set.JSON)
}
