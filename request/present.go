package request

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Presentation is the shape of successful results (VD-002).
type Presentation string

// Presentations. Human is verbose here; the command line formats it.
const (
	Agent   Presentation = "agent"
	Verbose Presentation = "verbose"
	Human   Presentation = "human"
)

// Lists of VD-081 to VD-083.
var (
	lifecycleNulls = []string{"parent_id", "superseded_by", "replaced_by"}
	scores         = []string{"score", "salience", "decay_factor", "rrf_score", "similarity", "cross_encoder_score", "graph_proximity_score"}
	fullOnly       = []string{"context_entity_id", "thread_id", "outbound_ref", "parent_id", "session_id", "project_id", "full_id"}
	alwaysVerbose  = []string{
		"get", "link", "query", "traverse", "neighbors", "brain.feedback", "brain.auto_feedback", "memory.feedback",
		"comm.delivered", "comm.transport_status", "git.digest", "git.ingest_cursor",
		"developer_open_judgment", "developer_open_context_sources", "developer_conclude_judgment",
		"developer_authorize_change", "developer_record_landing",
	}
)

// AlwaysVerbose reports whether results of verb are never shortened (VD-083, VD-207).
func AlwaysVerbose(verb string) bool { return slices.Contains(alwaysVerbose, verb) }

// Presenter shortens the results of one answer for an agent. Errors are never shown
// to it (VD-080).
type Presenter struct {
	// Now is the one sample of the clock for the whole answer.
	Now time.Time
	// Unique reports whether no other record of the store starts with the undashed
	// prefix. Without it no identifier is shortened.
	Unique func(prefix string) bool
	// FullOnly reports whether a parameter of that name of some loaded verb takes
	// complete identifiers only (VD-207). It may be nil.
	FullOnly func(member string) bool

	ids   []string          // undashed, of the whole answer, sorted
	short map[string]string // decided so far
}

// Collect notes the identifiers of a result. All results of an answer are collected
// before the first is presented, so that one prefix means one record in all of it.
func (p *Presenter) Collect(v Value) {
	p.collect(v)
	slices.Sort(p.ids)
	p.ids = slices.Compact(p.ids)
}

func (p *Presenter) collect(v Value) {
	if id, ok := dashed(v); ok {
		p.ids = append(p.ids, id)
	}
	for _, it := range v.items {
		p.collect(it.Value)
	}
}

// dashed gives the digits of a string that is a UUID in canonical spelling.
func dashed(v Value) (digits string, ok bool) {
	if v.kind != String || len(v.text) != 36 {
		return "", false
	}
	id, ok := CanonicalUUID(v.text)
	return strings.ReplaceAll(id, "-", ""), ok && id == v.text
}

// Present gives the shortened form of a result (VD-081, VD-084). It is as deep as
// the result, which ParseResult has bounded.
func (p *Presenter) Present(v Value) Value { return p.value(v, "", "") }

// value presents what stands in member name of an object that is itself the member
// under of another.
func (p *Presenter) value(v Value, name, under string) Value {
	switch v.kind {
	case String:
		return p.text(v, name)
	case Number:
		if slices.Contains(scores, name) || under == "score_breakdown" {
			return rounded(v)
		}
	case Array:
		out := Value{kind: Array, items: make([]Item, len(v.items))}
		for i, it := range v.items {
			out.items[i].Value = p.value(it.Value, name, under)
		}
		return out
	case Object:
		out := Value{kind: Object, items: make([]Item, 0, len(v.items))}
		for _, it := range v.items {
			shown := p.value(it.Value, it.Name, name)
			if !hollow(shown) || keepHollow(shown, it.Name, name) {
				out.items = append(out.items, Item{it.Name, shown})
			}
		}
		return out
	}
	return v
}

// hollow reports whether v says nothing.
func hollow(v Value) bool {
	switch v.kind {
	case Null:
		return true
	case String:
		return v.text == ""
	case Array, Object:
		return len(v.items) == 0
	}
	return false
}

// keepHollow is true for what says something by being empty.
func keepHollow(v Value, name, under string) bool {
	if v.kind == Null {
		return strings.HasSuffix(name, "_at") || slices.Contains(lifecycleNulls, name)
	}
	return v.kind == String && under == "properties"
}

func (p *Presenter) text(v Value, name string) Value {
	if digits, ok := dashed(v); ok {
		if p.Unique == nil || slices.Contains(fullOnly, name) || p.FullOnly != nil && p.FullOnly(name) {
			return v
		}
		return OfString(p.shorten(digits, v.text))
	}
	if len(v.text) >= len("2006-01-02T15:04:05Z") {
		if t, err := time.Parse(time.RFC3339, v.text); err == nil {
			return OfString(p.when(t))
		}
	}
	return v
}

// Digits of the shortest prefix we accept back (VD-122).
const shortest = 8

// shorten gives the shortest prefix that means one record, here and in the store.
func (p *Presenter) shorten(digits, whole string) string {
	if s, ok := p.short[digits]; ok {
		return s
	}
	s := whole
	for n := shortest; n < len(digits); n++ {
		if prefix := digits[:n]; p.alone(prefix) && p.Unique(prefix) {
			s = prefix
			break
		}
	}
	if p.short == nil {
		p.short = map[string]string{}
	}
	p.short[digits] = s
	return s
}

// alone reports whether at most one identifier of the answer starts with prefix.
func (p *Presenter) alone(prefix string) bool {
	i, _ := slices.BinarySearch(p.ids, prefix)
	return i+1 >= len(p.ids) || !strings.HasPrefix(p.ids[i+1], prefix)
}

// when writes a time under a day old by its age, another to the minute.
func (p *Presenter) when(t time.Time) string {
	switch age := p.Now.Sub(t); {
	case age < 0 || age >= 24*time.Hour:
		return t.UTC().Format("2006-01-02T15:04Z")
	case age < time.Minute:
		return "just now"
	case age < time.Hour:
		return strconv.Itoa(int(age.Minutes())) + "m ago"
	default:
		return strconv.Itoa(int(age.Hours())) + "h ago"
	}
}

// rounded keeps three significant digits.
func rounded(v Value) Value {
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil {
		return v
	}
	f, err = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return Value{kind: Number, text: strconv.FormatFloat(f, notation(f), -1, 64)}
}

// notation writes an ordinary size without an exponent.
func notation(f float64) byte {
	if f = max(f, -f); f != 0 && (f < 1e-6 || f >= 1e15) {
		return 'g'
	}
	return 'f'
}
