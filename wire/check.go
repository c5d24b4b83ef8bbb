package wire

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reeve-run/reeve/fault"
)

// HookSlots are the slots a hook worker serves, in the order its hello lists them.
var HookSlots = []string{"attention.plan", "delivery.review"}

// The closed sets of single members.
var (
	roles       = []string{"workbench", "hooks"}
	statuses    = []string{"ok", "error", "yielded", "interrupted"}
	liveStreams = []string{"stdout", "stderr"}
	streams     = []string{"stdout", "stderr", "result"}
)

// Check refuses an envelope of another session or generation than the connection's
// (CP-006). A wrong generation is stale_generation, a wrong session invalid_request;
// either way the connection is lost (CP-008).
func Check(e Envelope, session, generation string) error {
	if e.SessionID != session {
		return fault.New(fault.InvalidRequest, opDecode, "envelope.session_id", "%q is not this connection's %q", shorten(e.SessionID), session)
	}
	if e.Generation != generation {
		return fault.New(fault.StaleGeneration, opDecode, "envelope.generation", "%q is not this connection's %q", shorten(e.Generation), generation)
	}
	return nil
}

// check holds every rule about the values of an envelope; both directions use it.
func check(e Envelope) *fault.Error {
	if f := first(identifier("envelope.session_id", e.SessionID), identifier("envelope.generation", e.Generation)); f != nil {
		return f
	}
	switch m := e.Message.(type) {
	case Hello:
		return checkHello(m)
	case Execute:
		return first(identifier("message.id", m.ID), bounded("message.code", m.Code, MaxCode))
	case Invoke:
		return first(identifier("message.id", m.ID), oneOf("message.slot", m.Slot, HookSlots))
	case HostRequest:
		return first(identifier("message.id", m.ID), identifier("message.execution_id", m.ExecutionID))
	case HostReply:
		return checkReply(m)
	case Completed:
		return checkCompleted(m)
	case Interrupt:
		return identifier("message.id", m.ID)
	case Shutdown:
		return nil
	case Output:
		return first(identifier("message.id", m.ID), oneOf("message.stream", m.Stream, liveStreams),
			bounded("message.text", m.Text, MaxOutputText), integer("message.seq", m.Seq, maxInteger))
	case Names:
		return checkNames(m)
	case Artifact:
		return checkArtifact(m)
	}
	return refuse(fault.InvalidRequest, "envelope.message", "is missing")
}

func checkHello(m Hello) *fault.Error {
	if f := first(digest("message.token", m.Token), oneOf("message.role", m.Role, roles)); f != nil {
		return f
	}
	if m.Role == "workbench" {
		switch {
		case m.Revision != nil:
			return refuse(fault.InvalidRequest, "message.revision", "a workbench sends null")
		case len(m.Slots) > 0:
			return refuse(fault.InvalidRequest, "message.slots", "a workbench sends none")
		case m.Skills != nil:
			return digest("message.skills", *m.Skills)
		}
		return nil
	}
	switch {
	case m.Revision == nil:
		return refuse(fault.InvalidRequest, "message.revision", "a hook worker sends its source identity, not null")
	case !slices.Equal(m.Slots, HookSlots):
		return refuse(fault.InvalidRequest, "message.slots", "a hook worker sends exactly %q", HookSlots)
	case m.Skills != nil:
		return refuse(fault.InvalidRequest, "message.skills", "a hook worker sends null")
	}
	return digest("message.revision", *m.Revision)
}

func checkReply(m HostReply) *fault.Error {
	if f := first(identifier("message.id", m.ID), identifier("message.execution_id", m.ExecutionID)); f != nil {
		return f
	}
	if m.Code == "" {
		if m.Text != "" {
			return refuse(fault.InvalidRequest, "message.result.code", "is empty")
		}
		return nil
	}
	if m.Value != nil {
		return refuse(fault.InvalidRequest, "message.result", "has both a value and an error")
	}
	return first(identifier("message.result.code", m.Code), bounded("message.result.message", m.Text, MaxErrorText))
}

func checkCompleted(m Completed) *fault.Error {
	if f := identifier("message.id", m.ID); f != nil {
		return f
	}
	forms := 0
	for _, set := range []bool{m.Cell != nil, m.Hook != nil, m.Failed != nil} {
		if set {
			forms++
		}
	}
	switch {
	case forms != 1:
		return refuse(fault.InvalidRequest, "message.result", "has %d forms, exactly one of cell, hook and failed is due", forms)
	case m.Cell != nil:
		return checkCell(m.Cell)
	case m.Failed != nil:
		return bounded("message.result.error", *m.Failed, MaxErrorText)
	}
	return nil
}

func checkCell(c *CellResult) *fault.Error {
	if f := first(oneOf("message.result.status", c.Status, statuses),
		integer("message.result.truncated_bytes", c.TruncatedBytes, maxInteger)); f != nil {
		return f
	}
	if len(c.Output) > MaxOutputItems {
		return refuse(fault.LimitExceeded, "message.result.output", "%d records are over the limit of %d", len(c.Output), MaxOutputItems)
	}
	size := 0
	for _, r := range c.Output {
		if f := first(oneOf("message.result.output.stream", r.Stream, streams), unicode("message.result.output.text", r.Text)); f != nil {
			return f
		}
		size += len(r.Text)
	}
	if size > MaxOutputText {
		return refuse(fault.LimitExceeded, "message.result.output", "%d bytes of text are over the limit of %d", size, MaxOutputText)
	}
	switch {
	case c.Error != nil && (c.Status == "ok" || c.Status == "yielded"):
		return refuse(fault.InvalidRequest, "message.result.error", "null is due for status %q", c.Status)
	case c.Error != nil:
		return bounded("message.result.error", *c.Error, MaxErrorText)
	case c.Status == "error":
		return refuse(fault.InvalidRequest, "message.result.error", "a string is due for status %q", c.Status)
	}
	return nil
}

func checkNames(m Names) *fault.Error {
	if f := identifier("message.id", m.ID); f != nil {
		return f
	}
	if n := len(m.Added) + len(m.Removed); n > MaxNames {
		return refuse(fault.LimitExceeded, "message.added", "%d names, added and removed together, are over the limit of %d", n, MaxNames)
	}
	for _, name := range m.Added {
		if f := first(nonEmpty("message.added", name), unicode("message.added", name)); f != nil {
			return f
		}
	}
	for _, name := range m.Removed {
		if f := first(nonEmpty("message.removed", name), unicode("message.removed", name)); f != nil {
			return f
		}
	}
	return nil
}

func checkArtifact(m Artifact) *fault.Error {
	if f := first(identifier("message.id", m.ID), identifier("message.artifact_id", m.ArtifactID), mediaType("message.mime", m.MIME),
		integer("message.size", m.Size, MaxArtifact), digest("message.sha256", m.SHA256), integer("message.index", m.Index, maxInteger)); f != nil {
		return f
	}
	if len(m.Data) > MaxArtifactPart {
		return refuse(fault.LimitExceeded, "message.data", "%d bytes are over the limit of %d", len(m.Data), MaxArtifactPart)
	}
	if int64(len(m.Data)) > m.Size {
		return refuse(fault.InvalidRequest, "message.data", "a part of %d bytes in an artifact of %d", len(m.Data), m.Size)
	}
	return nil
}

// first returns the first fault there is.
func first(faults ...*fault.Error) *fault.Error {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}

func identifier(field, text string) *fault.Error {
	if text == "" || len(text) > MaxIdentifier {
		return refuse(fault.InvalidRequest, field, "an identifier of %d bytes, 1 to %d are due", len(text), MaxIdentifier)
	}
	for i := range len(text) {
		c := text[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return refuse(fault.InvalidRequest, field, "%q is not of letters, digits, '_', '.' and '-'", shorten(text))
		}
	}
	return nil
}

// digest is 64 lower-case hex digits. The text is not repeated: it may be the token.
func digest(field, text string) *fault.Error {
	ok := len(text) == 64
	for i := 0; ok && i < len(text); i++ {
		c := text[i]
		ok = c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
	}
	if !ok {
		return refuse(fault.InvalidRequest, field, "64 lower-case hex digits are due")
	}
	return nil
}

// mediaType is type/subtype without parameters, lower case, at most 127 bytes.
func mediaType(field, text string) *fault.Error {
	kind, sub, found := strings.Cut(text, "/")
	ok := found && kind != "" && sub != "" && len(text) <= 127
	for _, c := range kind + sub {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '+' || c == '-')
	}
	if !ok {
		return refuse(fault.InvalidRequest, field, "%q is not a lower-case media type without parameters", shorten(text))
	}
	return nil
}

func bounded(field, text string, most int) *fault.Error {
	if len(text) > most {
		return refuse(fault.LimitExceeded, field, "%d bytes are over the limit of %d", len(text), most)
	}
	return unicode(field, text)
}

func unicode(field, text string) *fault.Error {
	if !utf8.ValidString(text) {
		return refuse(fault.InvalidRequest, field, "text is not UTF-8")
	}
	return nil
}

func nonEmpty(field, text string) *fault.Error {
	if text == "" {
		return refuse(fault.InvalidRequest, field, "is empty")
	}
	return nil
}

func integer(field string, n, most int64) *fault.Error {
	if n < 0 {
		return refuse(fault.InvalidRequest, field, "%d is negative", n)
	}
	if n > most {
		return refuse(fault.LimitExceeded, field, "%d is over the limit of %d", n, most)
	}
	return nil
}

func oneOf(field, text string, of []string) *fault.Error {
	if !slices.Contains(of, text) {
		return refuse(fault.InvalidRequest, field, "%q is not one of %q", shorten(text), of)
	}
	return nil
}
