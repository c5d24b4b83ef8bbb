package gate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	cedar "github.com/cedar-policy/cedar-go"
)

// tree is a rule in Cedar's JSON policy format, which is public and stable where
// the library's syntax tree is not.
type tree struct {
	raw        map[string]json.RawMessage
	conditions []any
}

func readTree(c *cedar.Policy) (tree, error) {
	b, err := c.MarshalJSON()
	if err != nil {
		return tree{}, fmt.Errorf("read rule: %w", err)
	}
	t := tree{}
	if err := json.Unmarshal(b, &t.raw); err != nil {
		return tree{}, fmt.Errorf("read rule: %w", err)
	}
	if raw, ok := t.raw["conditions"]; ok {
		if err := json.Unmarshal(raw, &t.conditions); err != nil {
			return tree{}, fmt.Errorf("read rule: %w", err)
		}
	}
	return t, nil
}

// scopeOnly is the rule with its conditions taken away.
func (t tree) scopeOnly() (*cedar.Policy, error) {
	return t.with(map[string]string{"conditions": "[]"})
}

// actionOnly permits the actions of the rule's scope to everybody everywhere.
func (t tree) actionOnly() (*cedar.Policy, error) {
	const all = `{"op":"All"}`
	return t.with(map[string]string{"effect": `"permit"`, "principal": all, "resource": all, "conditions": "[]"})
}

// with is the rule with members of its JSON form replaced.
func (t tree) with(members map[string]string) (*cedar.Policy, error) {
	m := maps.Clone(t.raw)
	for name, text := range members {
		m[name] = json.RawMessage(text)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("copy rule: %w", err)
	}
	var p cedar.Policy
	if err := p.UnmarshalJSON(b); err != nil {
		return nil, fmt.Errorf("copy rule: %w", err)
	}
	return &p, nil
}

// reads lists the longest attribute paths from context that the conditions access,
// sorted, each once.
func (t tree) reads() []string {
	found := map[string]bool{}
	// Explicit stack: a policy may nest as deeply as its size allows.
	stack := slices.Clone(t.conditions)
	for len(stack) > 0 {
		node := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch v := node.(type) {
		case []any:
			stack = append(stack, v...)
		case map[string]any:
			if path := contextPath(v); path != "" {
				found[path] = true
				continue
			}
			for _, child := range v {
				stack = append(stack, child)
			}
		}
	}
	out := make([]string, 0, len(found))
	for p := range found {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// contextPath is "context.a.b" when node is an access or a has on a chain that
// starts at context, else empty. A has is a read like any other: the schema is
// fixed, so asking whether an attribute exists is either always true or a mistake.
func contextPath(node map[string]any) string {
	var names []string
	for {
		access, ok := node["."].(map[string]any)
		if !ok {
			access, ok = node["has"].(map[string]any)
		}
		if !ok {
			break
		}
		name, ok := access["attr"].(string)
		if !ok {
			return ""
		}
		names = append(names, name)
		if node, ok = access["left"].(map[string]any); !ok {
			return ""
		}
	}
	if root, ok := node["Var"].(string); !ok || root != "context" || len(names) == 0 {
		return ""
	}
	path := "context"
	for _, n := range slices.Backward(names) {
		path += "." + n
	}
	return path
}
