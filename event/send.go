package event

// Kinds of the operator's lane: what an agent says to the operator. Sends and their
// decisions stand in the session's stream, messages in the stream "operator".
const (
	SendHeld        Kind = "send.held"
	SendConfirmed   Kind = "send.confirmed"
	SendApproved    Kind = "send.approved"
	SendDenied      Kind = "send.denied"
	OperatorMessage Kind = "operator.message"
	InputReceived   Kind = "input.received"
)

// SendHeldV1 is a text that waits for the operator: review did not let it pass, or
// there was none (CP-056). It has been shown to nobody.
type SendHeldV1 struct {
	Effect string `json:"effect"` // eff_ and 26 digits
	Text   string `json:"text"`
	Reason string `json:"reason"`
	By     Actor  `json:"by"`
	Asked  *Asked `json:"asked"`
}

// SendConfirmedV1 is a text that review let pass; the operator.message of the same
// batch carries it.
type SendConfirmedV1 struct {
	Effect string `json:"effect"`
	Text   string `json:"text"`
	By     Actor  `json:"by"`
	Asked  *Asked `json:"asked"`
}

// SendApprovedV1 is the operator's yes to a held send. The receipt of the send stays
// as it was.
type SendApprovedV1 struct {
	Effect string `json:"effect"`
	By     Actor  `json:"by"`
	Note   string `json:"note"`
}

// SendDeniedV1 is the operator's no.
type SendDeniedV1 struct {
	Effect string `json:"effect"`
	By     Actor  `json:"by"`
	Note   string `json:"note"`
}

// OperatorMessageV1 is a text in the operator's lane: it exists, which does not mean
// that anyone has read it.
type OperatorMessageV1 struct {
	Effect  string `json:"effect"`
	Session string `json:"session"`
	Text    string `json:"text"`
}

// InputReceivedV1 is something the agent of a session is told.
type InputReceivedV1 struct {
	Input  string `json:"input"`  // unique in the session
	Source string `json:"source"` // operator
	Text   string `json:"text"`
	About  string `json:"about"` // the held act or effect it answers, else empty
}

func (SendHeldV1) Kind() Kind        { return SendHeld }
func (SendConfirmedV1) Kind() Kind   { return SendConfirmed }
func (SendApprovedV1) Kind() Kind    { return SendApproved }
func (SendDeniedV1) Kind() Kind      { return SendDenied }
func (OperatorMessageV1) Kind() Kind { return OperatorMessage }
func (InputReceivedV1) Kind() Kind   { return InputReceived }

func (SendHeldV1) sealed()        {}
func (SendConfirmedV1) sealed()   {}
func (SendApprovedV1) sealed()    {}
func (SendDeniedV1) sealed()      {}
func (OperatorMessageV1) sealed() {}
func (InputReceivedV1) sealed()   {}
