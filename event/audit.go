package event

// Kinds of the stream "audit/<host>".
const (
	AuditDispatch Kind = "audit.dispatch"
	ConfigLocked  Kind = "config.locked"
)

// Decision is what the gate ruled, as the audit has it (VD-107).
type Decision string

// Decisions.
const (
	DecisionAllow       Decision = "allow"
	DecisionDeny        Decision = "deny"
	DecisionUnavailable Decision = "gate_unavailable"
)

// AuditOutcome is how an operation ended (VD-106).
type AuditOutcome string

// Outcomes.
const (
	AuditSuccess AuditOutcome = "success"
	AuditError   AuditOutcome = "error"
	AuditDenied  AuditOutcome = "denied"
	AuditHeld    AuditOutcome = "held" // allowed, and waits for the operator
)

// Obligation is what a rule demanded of an allowed act.
type Obligation struct {
	Kind   string `json:"kind"` // audit | hold | rate_limit
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

// Resource says what an operation took (VD-107).
type Resource struct {
	WorkClass string  `json:"work_class"` // the verb's effect
	CostUnit  *int64  `json:"cost_unit"`  // null unless known: absence is not zero
	RequestID *string `json:"request_id"` // decimal; groups the operations of one request
}

// AuditDispatchV1 is one operation that the gate was asked about (VD-106, VD-107).
type AuditDispatchV1 struct {
	ID            string        `json:"id"`
	AtMS          int64         `json:"timestamp_ms"`
	Actor         string        `json:"actor"` // kind:id
	Surface       string        `json:"surface"`
	SessionID     *string       `json:"session_id"`
	Namespace     string        `json:"namespace"`
	Verb          string        `json:"verb"`
	Pack          *string       `json:"pack"` // null for a verb nobody owns
	Effect        *string       `json:"effect"`
	Decision      Decision      `json:"decision"`
	DenyReason    *string       `json:"deny_reason"`
	Rules         []string      `json:"rules"`
	Policy        string        `json:"policy"` // digest
	Obligations   []Obligation  `json:"obligations"`
	GateImpl      string        `json:"gate_impl"`
	Outcome       AuditOutcome  `json:"outcome"`
	Code          *string       `json:"code"` // of the fault
	Act           *string       `json:"act"`
	TargetID      *string       `json:"target_id"`
	OpIndex       int64         `json:"op_index"`
	RefResolution RefResolution `json:"ref_resolution"`
	DurationUS    int64         `json:"duration_us"` // 0 when nothing ran
	Resource      Resource      `json:"resource"`
}

// RefResolution says whether arguments referred to an earlier result.
type RefResolution string

// Ways of arguments.
const (
	RefLiteral  RefResolution = "literal"
	RefResolved RefResolution = "resolved"
)

// ConfigLockedV1 is a setting that took effect once, at start (VD-111).
type ConfigLockedV1 struct {
	Verb   string `json:"verb"` // config.lock, never that of a bystander
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

func (AuditDispatchV1) Kind() Kind { return AuditDispatch }
func (ConfigLockedV1) Kind() Kind  { return ConfigLocked }

func (AuditDispatchV1) sealed() {}
func (ConfigLockedV1) sealed()  {}
