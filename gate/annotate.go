package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	cedar "github.com/cedar-policy/cedar-go"
)

// The annotations a rule may carry. Any other is refused: a misspelt @hold would
// otherwise be an unheld act.
const (
	annID        = "id"
	annReason    = "reason"
	annRemedy    = "remedy"
	annHold      = "hold"
	annAudit     = "audit"
	annRateLimit = "rate_limit"
	annMustAllow = "must_allow"
	annMustDeny  = "must_deny"
)

var annotations = []string{annAudit, annHold, annID, annMustAllow, annMustDeny, annRateLimit, annReason, annRemedy}

func annotated(c *cedar.Policy) (Rule, error) {
	r := Rule{Effect: "permit"}
	if c.Effect() == cedar.Forbid {
		r.Effect = "forbid"
	}
	values := map[string]string{}
	for k, v := range c.Annotations() {
		if !slices.Contains(annotations, string(k)) {
			return r, fmt.Errorf("unknown annotation @%s (known: @%s)", k, strings.Join(annotations, ", @"))
		}
		values[string(k)] = string(v)
	}
	r.ID, r.Reason, r.Remedy = values[annID], values[annReason], values[annRemedy]
	if r.ID == "" || strings.ContainsAny(r.ID, " \t\n,") {
		return r, fmt.Errorf("needs an @id without spaces or commas")
	}
	if r.Reason == "" {
		return r, fmt.Errorf("needs a @reason: it is what a refused caller reads")
	}
	if err := r.oblige(values); err != nil {
		return r, err
	}
	var err error
	if r.allow, err = parseExamples(values[annMustAllow]); err != nil {
		return r, fmt.Errorf("@%s: %w", annMustAllow, err)
	}
	if r.deny, err = parseExamples(values[annMustDeny]); err != nil {
		return r, fmt.Errorf("@%s: %w", annMustDeny, err)
	}
	return r, nil
}

func (r *Rule) oblige(values map[string]string) error {
	hold, held := values[annHold]
	tag, audited := values[annAudit]
	rate, limited := values[annRateLimit]
	if r.Effect == "forbid" && (held || audited || limited) {
		return fmt.Errorf("a forbid cannot carry obligations")
	}
	if held {
		if hold == "" {
			hold = r.Reason
		}
		r.obligations = append(r.obligations, Obligation{Kind: ObligeHold, Rule: r.ID, Reason: hold})
	}
	if audited {
		if tag == "" {
			return fmt.Errorf("@%s needs a tag", annAudit)
		}
		r.obligations = append(r.obligations, Obligation{Kind: ObligeAudit, Rule: r.ID, Tag: tag})
	}
	if limited {
		o, err := parseRate(rate)
		if err != nil {
			return err
		}
		o.Rule = r.ID
		r.obligations = append(r.obligations, o)
	}
	return nil
}

// parseRate reads "10/1m": at most 10 in every minute.
func parseRate(s string) (Obligation, error) {
	max, window, ok := strings.Cut(s, "/")
	n, err := strconv.ParseInt(max, 10, 64)
	d, derr := time.ParseDuration(window)
	if !ok || err != nil || derr != nil || n < 1 || n > maxRate || d < time.Second || d > 24*time.Hour || d%time.Second != 0 {
		return Obligation{}, fmt.Errorf("@%s %q is not COUNT/WINDOW with 1..%d and whole seconds up to 24h, like 10/1m", annRateLimit, s, maxRate)
	}
	return Obligation{Kind: ObligeRateLimit, Max: n, WindowSecs: int64(d / time.Second)}, nil
}
