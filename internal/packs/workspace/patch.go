package workspace

import (
	"strconv"
	"strings"

	"github.com/reeve-run/reeve/fault"
)

// patch is the part of a unified diff that concerns one file. An empty from makes
// the file, an empty to removes it.
type patch struct {
	from, to string
	hunks    []hunk
}

// hunk replaces old, which begins at line start (from 1), by new. Lines keep their
// ends.
type hunk struct {
	start    int
	old, new []string
}

func badPatch(line int, problem string) error {
	return fault.New(fault.InvalidRequest, "apply patch", "line "+strconv.Itoa(line), "%s", problem).
		WithNext("give a unified diff: --- a/x, +++ b/x, @@ -1,2 +1,3 @@, and lines that begin with space, + or -")
}

// parsePatch reads a unified diff. Lines before a file's header, such as git's, are
// passed over.
func parsePatch(text string) ([]patch, error) {
	var all []patch
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "--- ") {
			continue
		}
		if i+1 >= len(lines) || !strings.HasPrefix(lines[i+1], "+++ ") {
			return nil, badPatch(i+1, "a line that begins with --- needs one that begins with +++ after it")
		}
		p := patch{from: patchPath(lines[i]), to: patchPath(lines[i+1])}
		if p.from == "" && p.to == "" {
			return nil, badPatch(i+1, "both names are /dev/null")
		}
		i += 2
		for i < len(lines) && strings.HasPrefix(lines[i], "@@") {
			h, next, err := parseHunk(lines, i)
			if err != nil {
				return nil, err
			}
			p.hunks, i = append(p.hunks, h), next
		}
		i--
		if len(all) == MaxFiles {
			return nil, fault.New(fault.LimitExceeded, "apply patch", "patch", "it concerns more than %d files", MaxFiles)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, badPatch(1, "there is no file header in it")
	}
	return all, nil
}

// patchPath is the name in a header line, without a/ or b/ and a time; empty for
// /dev/null.
func patchPath(line string) string {
	name, _, _ := strings.Cut(strings.TrimRight(line[4:], "\r\n"), "\t")
	if name == "/dev/null" {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "a/"); ok && line[0] == '-' {
		return rest
	}
	if rest, ok := strings.CutPrefix(name, "b/"); ok && line[0] == '+' {
		return rest
	}
	return name
}

func parseHunk(lines []string, i int) (h hunk, next int, err error) {
	head := i
	start, oldCount, newCount, ok := hunkHeader(lines[i])
	if !ok {
		return h, i, badPatch(i+1, "the hunk header cannot be read")
	}
	h.start = start
	for i++; oldCount > 0 || newCount > 0; i++ {
		if i >= len(lines) || lines[i] == "" {
			return h, i, badPatch(head+1, "the hunk ends before its counts are reached")
		}
		text := lines[i][1:]
		switch lines[i][0] {
		case ' ':
			h.old, h.new = append(h.old, text), append(h.new, text)
			oldCount, newCount = oldCount-1, newCount-1
		case '\n', '\r': // an empty context line that lost its space
			h.old, h.new = append(h.old, lines[i]), append(h.new, lines[i])
			oldCount, newCount = oldCount-1, newCount-1
		case '-':
			h.old, oldCount = append(h.old, text), oldCount-1
		case '+':
			h.new, newCount = append(h.new, text), newCount-1
		case '\\':
			h.unended(lines[i-1])
		default:
			return h, i, badPatch(i+1, "a line of a hunk begins with space, + or -")
		}
		if oldCount < 0 || newCount < 0 {
			return h, i, badPatch(head+1, "the hunk has more lines than its header says")
		}
	}
	if i < len(lines) && strings.HasPrefix(lines[i], `\`) {
		h.unended(lines[i-1])
		i++
	}
	return h, i, nil
}

// unended takes the newline from the line that the mark "\ No newline at end of
// file" follows.
func (h *hunk) unended(before string) {
	trim := func(side []string) {
		if n := len(side); n > 0 {
			side[n-1] = strings.TrimSuffix(side[n-1], "\n")
		}
	}
	switch before[0] {
	case '-':
		trim(h.old)
	case '+':
		trim(h.new)
	default:
		trim(h.old)
		trim(h.new)
	}
}

// hunkHeader reads "@@ -start,count +start,count @@"; a count that is left out is 1.
func hunkHeader(line string) (start, oldCount, newCount int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "@@" || fields[3] != "@@" || fields[1][0] != '-' || fields[2][0] != '+' {
		return 0, 0, 0, false
	}
	start, oldCount, ok = span(fields[1][1:])
	if !ok {
		return 0, 0, 0, false
	}
	_, newCount, ok = span(fields[2][1:])
	return start, oldCount, newCount, ok
}

func span(s string) (start, count int, ok bool) {
	first, rest, more := strings.Cut(s, ",")
	start, err := strconv.Atoi(first)
	if err != nil || start < 0 {
		return 0, 0, false
	}
	if !more {
		return start, 1, true
	}
	count, err = strconv.Atoi(rest)
	return start, count, err == nil && count >= 0
}

// apply is data with the hunks applied. A hunk whose lines stand elsewhere, once, is
// applied there; one that does not fit is refused.
func (p *patch) apply(data []byte) ([]byte, error) {
	lines := strings.SplitAfter(string(data), "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	var out []string
	done := 0
	for n, h := range p.hunks {
		at := h.start - 1
		if len(h.old) == 0 {
			at = h.start // text is put in after that line
		}
		if !fits(lines, at, h.old) || at < done {
			var err error
			if at, err = h.find(lines, done); err != nil {
				return nil, fault.Wrap(err, fault.Conflict, "apply patch", p.from).WithNext("read the file again: hunk %d of its patch does not fit", n+1)
			}
		}
		out = append(append(out, lines[done:at]...), h.new...)
		done = at + len(h.old)
	}
	return []byte(strings.Join(append(out, lines[done:]...), "")), nil
}

func fits(lines []string, at int, old []string) bool {
	if at < 0 || at+len(old) > len(lines) {
		return false
	}
	for i, l := range old {
		if lines[at+i] != l {
			return false
		}
	}
	return true
}

func (h *hunk) find(lines []string, from int) (int, error) {
	found := -1
	for at := from; at+len(h.old) <= len(lines) && len(h.old) > 0; at++ {
		if !fits(lines, at, h.old) {
			continue
		}
		if found >= 0 {
			return 0, fault.New(fault.Conflict, "find hunk", "", "its lines stand there more than once")
		}
		found = at
	}
	if found < 0 {
		return 0, fault.New(fault.Conflict, "find hunk", "", "its lines do not stand there")
	}
	return found, nil
}

// planPatch turns a patch into edits.
func (w *tree) planPatch(text string) ([]edit, error) {
	const op = "apply patch"
	patches, err := parsePatch(text)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var edits []edit
	for i := range patches {
		p := &patches[i]
		more, err := w.planFile(op, p)
		if err != nil {
			return nil, err
		}
		for _, e := range more {
			if seen[e.path] {
				return nil, fault.New(fault.InvalidRequest, op, e.path, "it stands in the patch twice").WithNext("join the two parts")
			}
			seen[e.path] = true
		}
		edits = append(edits, more...)
	}
	return edits, nil
}

func (w *tree) planFile(op string, p *patch) ([]edit, error) {
	source := p.from
	if source == "" {
		source = p.to
	}
	name, err := w.place(op, source, p.to != p.from)
	if err != nil {
		return nil, err
	}
	f, err := w.load(op, name)
	if err != nil {
		return nil, err
	}
	switch {
	case p.from == "" && f.exists:
		return nil, fault.New(fault.Conflict, op, name, "the patch makes it, and it exists").WithNext("give a diff against what is there")
	case p.from != "" && !f.exists:
		return nil, missing(op, name)
	}
	data, err := p.apply(f.data)
	if err != nil {
		return nil, err
	}
	after := file{exists: true, data: data, mode: f.mode}
	switch {
	case p.to == "":
		if len(data) > 0 {
			return nil, fault.New(fault.Conflict, op, name, "the patch removes it, and %d bytes would be left", len(data))
		}
		return []edit{{name, f, file{}}}, nil
	case p.from == "" || p.to == p.from:
		return []edit{{name, f, after}}, nil
	}
	to, err := w.place(op, p.to, true)
	if err != nil {
		return nil, err
	}
	there, err := w.load(op, to)
	if err != nil {
		return nil, err
	}
	if there.exists {
		return nil, fault.New(fault.Conflict, op, to, "the patch renames to it, and it exists")
	}
	return []edit{{to, file{}, after}, {name, f, file{}}}, nil
}
