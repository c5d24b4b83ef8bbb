package wire

import (
	"encoding/base64"
	"strconv"

	"github.com/reeve-run/reeve/fault"
)

const (
	opAppend   = "write frame"
	headerSize = 4
)

// Append adds one whole frame, header and payload, to dst. It applies every rule
// Decode applies, so that nothing is sent which a peer would refuse: limit_exceeded
// for a bound, the encoded frame's included (CP-009), invalid_request for the rest.
// On an error dst comes back as it was. Neither HTML nor non-ASCII is escaped
// (CP-007); free-form values are checked and go out byte for byte.
func Append(dst []byte, e Envelope) ([]byte, error) {
	if f := first(check(e), checkFreeForm(e.Message)); f != nil {
		f.Op = opAppend
		return dst, f
	}
	start := len(dst)
	out := append(dst, 0, 0, 0, 0)
	out = append(out, `{"version":1,"session_id":"`...)
	out = append(out, e.SessionID...)
	out = append(out, `","generation":"`...)
	out = append(out, e.Generation...)
	out = append(out, `","message":{"kind":"`...)
	out = append(out, e.Message.MessageKind()...)
	out = append(out, '"')
	out = appendMessage(out, e.Message)
	out = append(out, '}', '}')
	n := len(out) - start - headerSize
	if n > MaxFrame {
		return dst, fault.New(fault.LimitExceeded, opAppend, "payload", "%d bytes are over the limit of %d", n, MaxFrame)
	}
	out[start], out[start+1], out[start+2], out[start+3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return out, nil
}

// checkFreeForm holds the sender's own JSON to the rules of the frame it goes into.
func checkFreeForm(m Message) *fault.Error {
	switch m := m.(type) {
	case Invoke:
		return checkRaw("message.input", m.Input, 2)
	case HostRequest:
		if f := checkRaw("message.request", m.Request, 2); f != nil {
			return f
		}
		object := scanner{b: m.Request, field: "message.request"}
		if object.peek() != '{' {
			return object.unexpected("an object")
		}
		if method := methodOf(m.Request); method != m.Method {
			return refuse(fault.InvalidRequest, "message.request.method", "%q, but the message says %q", shorten(method), shorten(m.Method))
		}
	case HostReply:
		if m.Code == "" {
			return checkRaw("message.result.value", m.Value, 3)
		}
	case Completed:
		if m.Hook != nil {
			return checkRaw("message.result.value", m.Hook, 3)
		}
	}
	return nil
}

// checkRaw checks a value that will stand under depth open objects.
func checkRaw(field string, value Raw, depth int) *fault.Error {
	if len(value) > MaxFrame {
		return refuse(fault.LimitExceeded, field, "%d bytes are over the limit of %d", len(value), MaxFrame)
	}
	if f := encoded(field, value); f != nil {
		return f
	}
	s := scanner{b: value, depth: depth, field: field}
	if f := s.value(); f != nil {
		return f
	}
	if s.peek(); s.pos < len(value) {
		return s.bad("trailing text")
	}
	return nil
}

func appendMessage(out []byte, m Message) []byte {
	switch m := m.(type) {
	case Hello:
		out = appendText(out, `,"token":`, m.Token)
		out = appendText(out, `,"role":`, m.Role)
		out = appendOptional(out, `,"revision":`, m.Revision)
		out = appendTexts(out, `,"slots":`, m.Slots)
		out = appendOptional(out, `,"skills":`, m.Skills)
	case Execute:
		out = appendText(out, `,"id":`, m.ID)
		out = appendText(out, `,"code":`, m.Code)
	case Invoke:
		out = appendText(out, `,"id":`, m.ID)
		out = appendText(out, `,"slot":`, m.Slot)
		out = append(append(out, `,"input":`...), m.Input...)
	case HostRequest:
		out = appendText(out, `,"id":`, m.ID)
		out = appendText(out, `,"execution_id":`, m.ExecutionID)
		out = append(append(out, `,"request":`...), m.Request...)
	case HostReply:
		out = appendReply(out, m)
	case Completed:
		out = appendCompleted(out, m)
	case Interrupt:
		out = appendText(out, `,"id":`, m.ID)
	case Output:
		out = appendText(out, `,"id":`, m.ID)
		out = appendText(out, `,"stream":`, m.Stream)
		out = appendText(out, `,"text":`, m.Text)
		out = appendInteger(out, `,"seq":`, m.Seq)
	case Names:
		out = appendText(out, `,"id":`, m.ID)
		out = appendTexts(out, `,"added":`, m.Added)
		out = appendTexts(out, `,"removed":`, m.Removed)
	case Artifact:
		out = appendArtifact(out, m)
	}
	return out
}

func appendReply(out []byte, m HostReply) []byte {
	out = appendText(out, `,"id":`, m.ID)
	out = appendText(out, `,"execution_id":`, m.ExecutionID)
	if m.Code == "" {
		out = append(out, `,"result":{"kind":"ok","value":`...)
		out = append(out, m.Value...)
		return append(out, '}')
	}
	out = appendText(out, `,"result":{"kind":"error","code":`, m.Code)
	out = appendText(out, `,"message":`, m.Text)
	return append(out, '}')
}

func appendCompleted(out []byte, m Completed) []byte {
	out = appendText(out, `,"id":`, m.ID)
	switch {
	case m.Cell != nil:
		out = appendText(out, `,"result":{"kind":"cell","status":`, m.Cell.Status)
		out = append(out, `,"output":[`...)
		for i, r := range m.Cell.Output {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendText(out, `{"stream":`, r.Stream)
			out = appendText(out, `,"text":`, r.Text)
			out = append(out, '}')
		}
		out = appendInteger(out, `],"truncated_bytes":`, m.Cell.TruncatedBytes)
		out = appendOptional(out, `,"error":`, m.Cell.Error)
	case m.Hook != nil:
		out = append(out, `,"result":{"kind":"hook","value":`...)
		out = append(out, m.Hook...)
	default:
		out = appendText(out, `,"result":{"kind":"failed","error":`, *m.Failed)
	}
	return append(out, '}')
}

func appendArtifact(out []byte, m Artifact) []byte {
	out = appendText(out, `,"id":`, m.ID)
	out = appendText(out, `,"artifact_id":`, m.ArtifactID)
	out = appendText(out, `,"mime":`, m.MIME)
	out = appendInteger(out, `,"size":`, m.Size)
	out = appendText(out, `,"sha256":`, m.SHA256)
	out = appendInteger(out, `,"index":`, m.Index)
	out = strconv.AppendBool(append(out, `,"last":`...), m.Last)
	out = base64.StdEncoding.AppendEncode(append(out, `,"data":"`...), m.Data)
	return append(out, '"')
}

func appendInteger(out []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(out, name...), n, 10)
}

func appendOptional(out []byte, name string, text *string) []byte {
	if text == nil {
		return append(append(out, name...), "null"...)
	}
	return appendText(out, name, *text)
}

func appendTexts(out []byte, name string, texts []string) []byte {
	out = append(append(out, name...), '[')
	for i, text := range texts {
		sep := ""
		if i > 0 {
			sep = ","
		}
		out = appendText(out, sep, text)
	}
	return append(out, ']')
}

// appendText adds name, then text as a JSON string: escapes only for '"', '\' and
// control characters, the short form where there is one.
func appendText(out []byte, name, text string) []byte {
	const digits = "0123456789abcdef"
	out = append(append(out, name...), '"')
	done := 0
	for i := range len(text) {
		c := text[i]
		if plain[c] {
			continue
		}
		out = append(out, text[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		default:
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(out, text[done:]...), '"')
}
