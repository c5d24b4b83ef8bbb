package workspace

import (
	"bytes"
	"errors"
	"syscall"
	"unicode/utf8"
)

const nonblock = syscall.O_NONBLOCK

func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// binary reports whether b is no text.
func binary(b []byte) bool { return !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 }

// cut is the longest beginning of s of at most n bytes that ends between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
