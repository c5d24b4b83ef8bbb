package work_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reeve-run/reeve/canon"
	"github.com/reeve-run/reeve/work"
)

// replays are the histories there are, by name.
func replays(t testing.TB) map[string]canon.Value {
	t.Helper()
	files, err := os.ReadDir(vectorPath(t, "replays"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]canon.Value{}
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".json"); ok {
			all[name] = vectorFile(t, "replays/"+f.Name())
		}
	}
	if len(all) == 0 {
		t.Fatal("no replays")
	}
	return all
}

// entries parses the stored values of a vector.
func entries(t testing.TB, v canon.Value) []*work.Entry {
	t.Helper()
	var all []*work.Entry
	for _, e := range member(t, v, "entries").Items() {
		all = append(all, work.Parse(form(t, e)))
	}
	return all
}

// about is what the histories of a name show beside replay itself.
var about = map[string]string{
	"01": "DV-150", "02": "DV-152 DV-160", "03": "DV-161", "04": "DV-161", "05": "DV-152 DV-156", "06": "DV-140 DV-141", "07": "DV-176 DV-177 DV-042 DV-047", "08": "DV-167 DV-168 DV-169 DV-042 DV-047",
	"09": "DV-170 DV-046", "10": "DV-170 DV-045 DV-043", "11": "DV-170", "12": "DV-170 DV-045 DV-043", "13": "DV-170", "14": "DV-170", "15": "DV-170", "16": "DV-170",
	"17": "DV-170", "18": "DV-170", "19": "DV-170", "20": "DV-156", "21": "DV-172", "22": "DV-152 DV-155", "23": "DV-152 DV-151", "24": "DV-152",
	"25": "DV-153", "26": "DV-152", "27": "DV-162 DV-031", "28": "DV-172 DV-048", "29": "DV-164 DV-032", "30": "DV-164 DV-071", "31": "DV-165 DV-036 DV-038 DV-157", "32": "DV-166",
	"33": "DV-166 DV-037 DV-039", "34": "DV-035 DV-165", "35": "DV-167 DV-040", "36": "DV-168 DV-033", "37": "DV-169", "38": "DV-169 DV-142", "39": "DV-171 DV-172 DV-041",
	"40": "DV-172", "41": "DV-174", "42": "DV-174", "43": "DV-175 DV-143", "44": "DV-175 DV-044 DV-173", "45": "DV-163", "46": "DV-163", "47": "DV-176",
	"48": "DV-176", "49": "DV-162 DV-176", "50": "DV-177", "51": "DV-162 DV-175", "52": "DV-170", "53": "DV-156", "54": "DV-176", "55": "DV-162 DV-173",
	"56": "DV-165", "57": "DV-151", "58": "DV-005 DV-006", "59": "DV-050 DV-113", "60": "DV-178", "61": "DV-178", "62": "DV-178",
}

func TestReplayVectors(t *testing.T) {
	t.Parallel()
	for name, v := range replays(t) {
		t.Run(name, func(t *testing.T) {
			t.Attr("requirement", strings.TrimSpace("DV-054 DV-151 DV-152 DV-154 DV-155 "+about[name[:2]]))
			t.Parallel()
			expect := member(t, v, "expect")
			var accepted, rejected []canon.Value
			state := work.State{}.Replay(slices.Values(entries(t, v)), 0, work.All(work.Reference), func(a *work.Accepted, r *work.Rejection) {
				if a != nil {
					accepted = append(accepted, canon.OfNumber(float64(a.StoredIndex())))
				} else {
					rejected = append(rejected, plainRejection(r))
				}
			})
			same(t, "accepted", canon.OfArray(accepted...), member(t, expect, "acceptedIndexes"))
			same(t, "rejected", canon.OfArray(rejected...), withoutMessages(t, member(t, expect, "rejected")))
			if state.Len() != number(t, expect, "acceptedCount") || len(rejected) != number(t, expect, "rejectedCount") {
				t.Errorf("%d accepted, %d rejected", state.Len(), len(rejected))
			}
			scopes := state.AppendScopes(nil)
			if err := canon.Verify(scopes); err != nil {
				t.Error(err)
			}
			if want, there := expect.Member("scopes"); there {
				same(t, "scopes", parsed(t, scopes), want)
			}
			if got, want := canon.Hash(scopes), text(t, expect, "scopesSha256"); got != want {
				t.Errorf("scopes hash to %s, want %s", got, want)
			}
		})
	}
}

// same compares two values in their canonical form.
func same(t testing.TB, what string, got, want canon.Value) {
	t.Helper()
	if diff := cmp.Diff(broken(form(t, want)), broken(form(t, got))); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// broken puts each member on a line, so that a difference is short.
func broken(text []byte) string { return strings.ReplaceAll(string(text), `,"`, ",\n\"") }

// plainRejection writes a rejection as the vectors do, without its message, of which the
// transition code is checked to be the beginning.
func plainRejection(r *work.Rejection) canon.Value {
	members := []canon.Item{
		{Name: "code", Value: canon.OfString(string(r.Code))},
		{Name: "observedIdentity", Value: canon.OfString(identity(r.Observed))},
		{Name: "storedIndex", Value: canon.OfNumber(float64(r.StoredIndex))},
	}
	if r.Code == work.TransitionRejected {
		transition := canon.Value{}
		if r.Transition != "" {
			transition = canon.OfString(string(r.Transition))
			if !strings.HasPrefix(r.Message, string(r.Transition)+": ") {
				transition = canon.OfString("not in the message " + r.Message)
			}
		}
		members = append(members, canon.Item{Name: "transitionCode", Value: transition})
	}
	return canon.OfObject(members...)
}

func withoutMessages(t testing.TB, rejected canon.Value) canon.Value {
	t.Helper()
	var all []canon.Value
	for _, r := range rejected.Items() {
		var members []canon.Item
		for name, m := range r.Members() {
			switch name {
			case "kind", "message":
				continue
			case "observedIdentity":
				m = canon.OfString(string(form(t, m)))
			}
			members = append(members, canon.Item{Name: name, Value: m})
		}
		all = append(all, canon.OfObject(members...))
	}
	return canon.OfArray(all...)
}
