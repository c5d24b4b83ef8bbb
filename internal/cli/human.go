package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// visible makes text safe for a terminal and for a line of a table: control
// characters, also those that an agent chose, are shown and do nothing.
func visible(s string) string {
	if !strings.ContainsFunc(s, steers) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(" ⏎ ")
		case steers(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// steers reports characters that move the cursor, colour, or reorder text.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// inert is visible for whole texts: lines stay lines.
func inert(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = visible(l)
	}
	return strings.Join(lines, "\n")
}

// clip cuts s to width runes with a sign that it was cut; width 0 is unlimited.
func clip(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	r := []rune(s)
	return string(r[:max(0, width-1)]) + "…"
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for v >= unit && i < 4 {
		v, i = v/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// span is a duration for people, in two units at most.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

func millis(ms int64) string { return span(time.Duration(ms) * time.Millisecond) }

// when is a point in time: how long ago on a terminal, RFC 3339 for programs.
func (p printer) when(ms int64) string {
	switch {
	case ms == 0:
		return ""
	case p.tty:
		return span(time.Since(time.UnixMilli(ms))) + " ago"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}
