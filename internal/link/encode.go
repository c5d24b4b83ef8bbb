package link

import (
	"encoding/binary"
	"strconv"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

const headerSize = 4

// appendFrame adds f, header and JSON, to dst. A body is checked, so that a caller's
// bad JSON is its own error and not the end of the connection.
func appendFrame(dst []byte, f *frame) ([]byte, error) {
	if has[f.kind]&mBody != 0 {
		if err := checkValue(f.body); err != nil {
			return dst, err
		}
	}
	start := len(dst)
	out := append(dst, 0, 0, 0, 0)
	out = append(append(append(out, `{"kind":"`...), kindNames[f.kind]...), '"')
	if f.id != 0 {
		out = appendNumber(out, `,"id":`, f.id)
	}
	switch f.kind {
	case handshake:
		out = appendNumber(out, `,"min":`, f.hello.min)
		out = appendNumber(out, `,"max":`, f.hello.max)
		out = appendText(out, `,"client":`, f.hello.client)
		out = appendText(out, `,"version":`, f.hello.version)
		out = appendText(out, `,"config_id":`, f.hello.configID)
		out = append(append(out, `,"config":`...), f.hello.config...)
		out = strconv.AppendBool(append(out, `,"read_only":`...), f.hello.readOnly)
	case handshakeAck:
		out = appendNumber(out, `,"protocol":`, f.hello.protocol)
		out = appendText(out, `,"version":`, f.hello.version)
		out = appendNumber(out, `,"pid":`, f.hello.pid)
		out = appendText(out, `,"config_id":`, f.hello.configID)
		out = append(append(out, `,"config":`...), f.hello.config...)
	case request:
		out = appendText(out, `,"method":`, f.method)
		out = appendText(out, `,"request_id":`, f.requestID)
		out = strconv.AppendBool(append(out, `,"replay":`...), f.replay)
		out = appendNumber(out, `,"timeout_ms":`, f.timeout)
	case subscribe:
		out = appendText(out, `,"method":`, f.method)
		out = appendText(out, `,"request_id":`, f.requestID)
	case failure:
		out = appendText(out, `,"code":`, string(f.fault.code))
		out = appendText(out, `,"message":`, f.fault.message)
		out = appendText(out, `,"next":`, f.fault.next)
		out = strconv.AppendBool(append(out, `,"retryable":`...), f.fault.retryable)
		out = appendText(out, `,"reason":`, string(f.fault.reason))
	case event:
		out = appendNumber(out, `,"seq":`, f.seq)
	default: // an id is all it has
	}
	if has[f.kind]&mBody != 0 {
		out = append(append(out, `,"body":`...), f.body...)
	}
	out = append(out, '}')
	n := len(out) - start - headerSize
	if n > MaxFrame {
		return dst, fault.New(fault.LimitExceeded, "write frame", f.kind.String(), "%d bytes are over the limit of %d", n, MaxFrame)
	}
	binary.BigEndian.PutUint32(out[start:], uint32(n))
	return out, nil
}

func appendNumber(out []byte, name string, n uint64) []byte {
	return strconv.AppendUint(append(out, name...), n, 10)
}

// plain marks the bytes that a JSON string holds as they are. Bytes over 0x7f are
// looked at as runes.
var plain = func() (t [256]bool) {
	for c := range 0x80 {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

// appendText adds name and s as a JSON string; what is not UTF-8 in s is replaced.
func appendText(out []byte, name, s string) []byte {
	out = append(append(out, name...), '"')
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && plain[s[j]] {
			j++
		}
		out = append(out, s[i:j]...)
		if i = j; i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
			i++
		case c < 0x20:
			const hex = "0123456789abcdef"
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			out = utf8.AppendRune(out, r)
			i += n
		}
	}
	return append(out, '"')
}
