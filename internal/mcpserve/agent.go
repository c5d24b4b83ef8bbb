package mcpserve

import (
	"regexp"
	"strings"
)

// toolFor are the commands that a tool of this server does the work of, as a hint
// for the command line names them, and the words for the tool.
var toolFor = []struct {
	command *regexp.Regexp
	tool    string
}{
	{regexp.MustCompile(`\breeve cell (?:show|output) ([A-Za-z0-9_.-]+)`), "the tool status with cell=$1"},
	{regexp.MustCompile(`\breeve cell interrupt ([A-Za-z0-9_.-]+)`), "the tool interrupt with cell=$1"},
	{regexp.MustCompile(`\breeve session show ([A-Za-z0-9_.-]+)`), "the tool status with session=$1"},
	{regexp.MustCompile(`\breeve (?:(?:cell|session) list|status)\b`), "the tool status"},
}

// operators finds the commands for which there is no tool.
var operators = regexp.MustCompile(`\breeve (?:act|anchor|can|cell|core|doctor|down|du|events|held|init|mcp|ns|pack|policy|ps|receipt|request|session|up|verify|version)\b`)

// inTools says a hint for the command line in terms of the tools, to a reader who
// has those and perhaps no shell. What only a command can do is the operator's.
func inTools(hint string) string {
	whole := false
	for _, t := range toolFor {
		whole = whole || t.command.FindString(hint) == hint && hint != ""
		hint = t.command.ReplaceAllString(hint, t.tool)
	}
	switch {
	case whole:
		return "use " + hint
	case operators.MatchString(hint) && !strings.HasPrefix(hint, "ask the operator"):
		return "for the operator: " + hint
	}
	return hint
}
