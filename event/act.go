package event

// Kinds of the ledger of acts: verbs that change something outside the journal.
// They stand in the stream of the session on whose behalf they were done.
const (
	ActIntended Kind = "act.intended"
	ActFinished Kind = "act.finished"
	ActUnknown  Kind = "act.unknown"
	ActSettled  Kind = "act.settled"
	ActHeld     Kind = "act.held"
	ActApproved Kind = "act.approved"
	ActDenied   Kind = "act.denied"
)

// Asked identifies the host request that led to an act (CP-132): the same one asked
// again is the same act.
type Asked struct {
	Execution string `json:"execution"`
	Request   string `json:"request"`
	Op        int64  `json:"op"` // position in a request of several operations
}

// Ruled is what the gate said before an act.
type Ruled struct {
	Rules  []string `json:"rules"`  // that permitted it
	Policy string   `json:"policy"` // digest of the policy set
}

// ActIntendedV1 is committed before a verb that touches the workspace or anything
// beyond runs. An intent that no outcome follows is unknown.
type ActIntendedV1 struct {
	Act        string  `json:"act"`
	Verb       string  `json:"verb"`
	Effect     string  `json:"effect"` // workspace | external
	Namespace  string  `json:"namespace"`
	Args       *string `json:"args"` // JSON text as submitted, null above 16 KiB
	ArgsSHA256 string  `json:"args_sha256"`
	By         Actor   `json:"by"`
	Asked      *Asked  `json:"asked"` // null unless a cell asked
	Held       *string `json:"held"`  // the held act that the operator approved
	Ruled      Ruled   `json:"ruled"`
	Discipline string  `json:"discipline"` // off | advisory | enforced
	Authorized bool    `json:"authorized"` // an authorization was active
	Query      bool    `json:"query"`      // repeating it changes nothing
}

// Disposition says whether an act took lasting effect (VD-074).
type Disposition string

// Dispositions.
const (
	Committed    Disposition = "committed"
	NotCommitted Disposition = "not_committed"
	Undetermined Disposition = "unknown"
)

// FileChange is what an act did to one path of the workspace. Before and After are
// artifacts; null means that there was no file.
type FileChange struct {
	Path       string  `json:"path"` // relative to the workspace, with slashes
	Before     *string `json:"before"`
	After      *string `json:"after"`
	BeforeMode int64   `json:"before_mode"` // permission bits, 0 when there was no file
	AfterMode  int64   `json:"after_mode"`
}

// ActFinishedV1 is the outcome, in one batch with the audit row.
type ActFinishedV1 struct {
	Act          string       `json:"act"`
	OK           bool         `json:"ok"`
	Disposition  Disposition  `json:"disposition"`
	Code         *string      `json:"code"` // of the fault
	Message      *string      `json:"message"`
	Result       *string      `json:"result"` // JSON text, null above 16 KiB and for a failure
	ResultSHA256 *string      `json:"result_sha256"`
	Files        []FileChange `json:"files"`
	DurationUS   int64        `json:"duration_us"`
}

// ActUnknownV1 is written at the start of a core for an intent without an outcome.
type ActUnknownV1 struct {
	Act   string `json:"act"`
	Cause Cause  `json:"cause"`
}

// ActSettledV1 is somebody's word about an unknown act.
type ActSettledV1 struct {
	Act         string      `json:"act"`
	By          Actor       `json:"by"`
	Disposition Disposition `json:"disposition"` // committed | not_committed
	Note        string      `json:"note"`
}

// ActHeldV1 is an act that a rule lets pass only with the operator's approval
// (VD-203). Nothing has been done.
type ActHeldV1 struct {
	Held       string `json:"held"`
	Verb       string `json:"verb"`
	Effect     string `json:"effect"`
	Namespace  string `json:"namespace"`
	Args       string `json:"args"` // JSON text as submitted
	By         Actor  `json:"by"`
	Asked      *Asked `json:"asked"`
	Ruled      Ruled  `json:"ruled"`
	Reason     string `json:"reason"`
	Namespaced bool   `json:"namespaced"` // the namespace was named by the caller
}

// ActApprovedV1 lets a held act be tried again.
type ActApprovedV1 struct {
	Held string `json:"held"`
	By   Actor  `json:"by"`
	Note string `json:"note"`
}

// ActDeniedV1 ends a held act: it will not be done.
type ActDeniedV1 struct {
	Held string `json:"held"`
	By   Actor  `json:"by"`
	Note string `json:"note"`
}

func (ActIntendedV1) Kind() Kind { return ActIntended }
func (ActFinishedV1) Kind() Kind { return ActFinished }
func (ActUnknownV1) Kind() Kind  { return ActUnknown }
func (ActSettledV1) Kind() Kind  { return ActSettled }
func (ActHeldV1) Kind() Kind     { return ActHeld }
func (ActApprovedV1) Kind() Kind { return ActApproved }
func (ActDeniedV1) Kind() Kind   { return ActDenied }

func (ActIntendedV1) sealed() {}
func (ActFinishedV1) sealed() {}
func (ActUnknownV1) sealed()  {}
func (ActSettledV1) sealed()  {}
func (ActHeldV1) sealed()     {}
func (ActApprovedV1) sealed() {}
func (ActDeniedV1) sealed()   {}
