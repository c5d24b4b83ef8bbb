package wire

import (
	"github.com/reeve-run/reeve/fault"
)

// Members of any message, as bits of what was seen. A message is read in one pass
// whatever the order of its members, so each name has one type in all kinds.
const (
	mKind = 1 << iota
	mID
	mCode
	mSlot
	mInput
	mExecutionID
	mRequest
	mResult
	mToken
	mRole
	mRevision
	mSlots
	mSkills
	mStream
	mText
	mSeq
	mAdded
	mRemoved
	mArtifactID
	mMIME
	mSize
	mSHA256
	mIndex
	mLast
	mData
)

// memberFields are the members in the order of their bits, as faults name them.
var memberFields = []string{
	"message.kind", "message.id", "message.code", "message.slot", "message.input", "message.execution_id",
	"message.request", "message.result", "message.token", "message.role", "message.revision", "message.slots",
	"message.skills", "message.stream", "message.text", "message.seq", "message.added", "message.removed",
	"message.artifact_id", "message.mime", "message.size", "message.sha256", "message.index", "message.last",
	"message.data",
}

// members is what a message of each kind has, exactly.
var members = map[Kind]int{
	KindHello:       mKind | mToken | mRole | mRevision | mSlots | mSkills,
	KindExecute:     mKind | mID | mCode,
	KindInvoke:      mKind | mID | mSlot | mInput,
	KindHostRequest: mKind | mID | mExecutionID | mRequest,
	KindHostReply:   mKind | mID | mExecutionID | mResult,
	KindCompleted:   mKind | mID | mResult,
	KindInterrupt:   mKind | mID,
	KindShutdown:    mKind,
	KindOutput:      mKind | mID | mStream | mText | mSeq,
	KindNames:       mKind | mID | mAdded | mRemoved,
	KindArtifact:    mKind | mID | mArtifactID | mMIME | mSize | mSHA256 | mIndex | mLast | mData,
}

// fields holds the members of a message until its kind is known.
type fields struct {
	kind, id, code, slot, executionID, method string
	input, request                            Raw
	token, role, stream, text                 string
	revision, skills                          *string
	slots, added, removed                     []string
	seq, size, index                          int64
	artifactID, mime, sha256                  string
	last                                      bool
	data                                      []byte
	result                                    result
}

func (s *scanner) message() (Message, *fault.Error) {
	s.field = "message"
	var m fields
	seen := 0
	more, f := s.enter('{')
	for ; more && f == nil; more, f = s.more('}') {
		s.field = "message"
		name, f := s.name()
		if f != nil {
			return nil, f
		}
		bit, field := lookup(memberFields, name)
		if f := member("message", name, seen, bit); f != nil {
			return nil, f
		}
		seen |= bit
		s.field = field
		if f := s.messageMember(&m, bit); f != nil {
			return nil, f
		}
	}
	if f != nil {
		return nil, f
	}
	s.field = "message"
	if seen&mKind == 0 {
		return nil, missing("message", seen, mKind, memberFields)
	}
	want, known := members[Kind(m.kind)]
	if !known {
		return nil, refuse(fault.InvalidRequest, "message.kind", "%q is not a kind of message", shorten(m.kind))
	}
	if f := missing("message", seen, want, memberFields); f != nil {
		return nil, f
	}
	if f := surplus("message", seen, want, memberFields, m.kind); f != nil {
		return nil, f
	}
	return m.message()
}

// lookup finds the bit of a member among fields, which are qualified names; 0 when
// there is none.
func lookup(fields []string, name []byte) (bit int, field string) {
	for i, field := range fields {
		if at := len(field) - len(name); at > 0 && field[at-1] == '.' && field[at:] == string(name) {
			return 1 << i, field
		}
	}
	return 0, ""
}

func (s *scanner) messageMember(m *fields, bit int) (f *fault.Error) {
	switch bit {
	case mKind:
		m.kind, f = s.word()
	case mID:
		m.id, f = s.string()
	case mCode:
		m.code, f = s.string()
	case mSlot:
		m.slot, f = s.word()
	case mInput:
		m.input, f = s.raw()
	case mExecutionID:
		m.executionID, f = s.string()
	case mRequest:
		m.request, m.method, f = s.request()
	case mResult:
		f = s.result(&m.result)
	case mToken:
		m.token, f = s.string()
	case mRole:
		m.role, f = s.word()
	case mRevision:
		m.revision, f = s.optional()
	case mSlots:
		m.slots, f = s.strings(len(HookSlots))
	case mSkills:
		m.skills, f = s.optional()
	case mStream:
		m.stream, f = s.word()
	case mText:
		m.text, f = s.string()
	case mSeq:
		m.seq, f = s.integer()
	default:
		f = s.listOrArtifactMember(m, bit)
	}
	return f
}

func (s *scanner) listOrArtifactMember(m *fields, bit int) (f *fault.Error) {
	switch bit {
	case mAdded:
		m.added, f = s.strings(MaxNames)
	case mRemoved:
		m.removed, f = s.strings(MaxNames)
	case mArtifactID:
		m.artifactID, f = s.string()
	case mMIME:
		m.mime, f = s.string()
	case mSize:
		m.size, f = s.integer()
	case mSHA256:
		m.sha256, f = s.string()
	case mIndex:
		m.index, f = s.integer()
	case mLast:
		m.last, f = s.boolean()
	case mData:
		m.data, f = s.base64()
	}
	return f
}

// message makes the typed message of a kind whose members are all present.
func (m *fields) message() (Message, *fault.Error) {
	switch Kind(m.kind) {
	case KindHello:
		return Hello{Token: m.token, Role: m.role, Revision: m.revision, Slots: m.slots, Skills: m.skills}, nil
	case KindExecute:
		return Execute{ID: m.id, Code: m.code}, nil
	case KindInvoke:
		return Invoke{ID: m.id, Slot: m.slot, Input: m.input}, nil
	case KindHostRequest:
		return HostRequest{ID: m.id, ExecutionID: m.executionID, Method: m.method, Request: m.request}, nil
	case KindHostReply:
		return m.hostReply()
	case KindCompleted:
		return m.completed()
	case KindInterrupt:
		return Interrupt{ID: m.id}, nil
	case KindOutput:
		return Output{ID: m.id, Stream: m.stream, Text: m.text, Seq: m.seq}, nil
	case KindNames:
		return Names{ID: m.id, Added: m.added, Removed: m.removed}, nil
	case KindArtifact:
		return Artifact{ID: m.id, ArtifactID: m.artifactID, MIME: m.mime, Size: m.size, SHA256: m.sha256, Index: m.index, Last: m.last, Data: m.data}, nil
	default:
		return Shutdown{}, nil
	}
}

// request reads the object of a host request, keeps its bytes and finds its method.
// What the object should hold is the method's affair: a cell that asks for nonsense
// is answered, and does not lose its worker (CP-040).
func (s *scanner) request() (Raw, string, *fault.Error) {
	if s.peek() != '{' {
		return nil, "", s.unexpected("an object")
	}
	raw, f := s.raw()
	if f != nil {
		return nil, "", f
	}
	return raw, methodOf(raw), nil
}

// methodOf is the "method" of a request that is known to be a sound object, or empty
// when that is absent or no string.
func methodOf(request Raw) string {
	s := scanner{b: request}
	more, f := s.enter('{')
	for ; more && f == nil; more, f = s.more('}') {
		name, f := s.name()
		if f != nil {
			return ""
		}
		if string(name) == "method" {
			method, _ := s.string()
			return method
		}
		if s.value() != nil {
			return ""
		}
	}
	return ""
}
