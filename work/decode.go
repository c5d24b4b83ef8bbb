package work

import (
	"strconv"

	"github.com/reeve-run/reeve/canon"
)

// decoders has one for each kind there is.
var decoders = map[Kind]func(*reader) Payload{
	ScopeOpened:          func(r *reader) Payload { r.lit("{}"); return &OpenScope{} },
	ScopeClosed:          closeScope,
	ChangeAuthorized:     authorize,
	LandingRecorded:      land,
	FrameOpened:          openFrame,
	FrameReplaced:        replaceFrame,
	SnapshotOpened:       openSnapshot,
	PageAccounted:        accountPage,
	CoverageCompleted:    completeCoverage,
	BasisCreated:         createBasis,
	AssignmentReady:      recordAssignment,
	InvocationStarted:    startInvocation,
	InvocationSettled:    settle,
	SupportObserved:      observeSupport,
	ContributionAdmitted: admit,
	BlockerResolved:      resolveBlocker,
	ObligationDischarged: discharge,
	FrameConcluded:       conclude,
}

// decodePayload reads the canonical text of a payload as its kind says.
func decodePayload(kind Kind, text string) (Payload, *Refusal) {
	if text[0] != '{' {
		return nil, refuse(InvalidPayload, "%s: the payload is no object", kind)
	}
	decode, known := decoders[kind]
	if !known {
		return nil, refuse(UnknownKind, "%s is no kind of event", kind)
	}
	r := reader{s: text}
	p := decode(&r)
	if r.ok() && r.pos < len(text) {
		r.fail("the end of the payload")
	}
	if !r.ok() {
		return nil, refuse(InvalidPayload, "%s: %s expected at byte %s of the payload", kind, r.failed, strconv.Itoa(r.pos))
	}
	return p, nil
}

// verify makes the payload invalid when a digest it carries is not the one of the parts.
func (r *reader) verify(d Digest, what string, parts ...string) {
	if r.ok() && !d.hashes(parts...) {
		r.fail("the digest of the " + what)
	}
}

func closeScope(r *reader) Payload {
	p := &CloseScope{}
	r.lit(`{"closure":`)
	start := r.pos
	r.lit(`{"reason":`)
	at := r.pos
	p.Reason = text(r)
	reason := r.s[at:r.pos]
	r.lit(`,"reasonSha256":`)
	p.Digest = r.digest()
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	r.verify(p.Digest, "reason", `{"domain":"developer/v8/scope-closure","reason":`, reason, "}")
	return p
}

func authorize(r *reader) Payload {
	p := &Authorize{}
	r.lit(`{"authorization":`)
	start := r.pos
	r.lit(`{"authorizationId":`)
	p.Authorization = readID[AuthorizationID](r)
	cut := r.pos
	r.lit(`,"authorizationSha256":`)
	p.Digest = r.digest()
	rest := r.pos
	r.lit(`,"boundary":`)
	p.Boundary = boundary(r)
	r.lit(`,"conclusionSha256":`)
	p.Conclusion = r.digest()
	r.lit(`,"frameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"frameRevision":`)
	p.Revision = r.integer()
	r.lit(`,"movement":`)
	p.Movement = text(r)
	r.lit(`,"stableLanding":`)
	p.StableLanding = text(r)
	r.lit(`,"verificationTarget":`)
	p.Verification = text(r)
	r.lit("}")
	end := r.pos
	p.text = r.s[start:end]
	r.lit("}")
	r.verify(p.Digest, "authorization", `{"domain":"developer/v8/change-authorization","fields":`, r.s[start:cut], r.s[rest:end], "}")
	return p
}

func boundary(r *reader) *Boundary {
	switch {
	case r.has("null"):
		return nil
	case r.next(`{"assertion":`):
		var g CompilerGap
		r.lit(`{"assertion":`)
		g.Assertion = text(r)
		r.lit(`,"containment":`)
		g.Containment = text(r)
		r.lit(`,"establishedBy":`)
		g.EstablishedBy = text(r)
		r.lit(`,"kind":"trusted-compiler-gap","limitation":`)
		g.Limitation = text(r)
		r.lit(`,"verification":`)
		g.Verification = text(r)
		r.lit("}")
		return &Boundary{Compiler: &g}
	}
	var b RefinementBoundary
	r.lit(`{"failure":`)
	b.Failure = text(r)
	r.lit(`,"firstEffect":`)
	b.FirstEffect = text(r)
	r.lit(`,"kind":"refinement-boundary","producer":`)
	b.Producer = text(r)
	r.lit(`,"rawRepresentation":`)
	b.Raw = text(r)
	r.lit(`,"refinedRepresentation":`)
	b.Refined = text(r)
	r.lit("}")
	return &Boundary{Refinement: &b}
}

// A landing's own limits (DV-113).
const (
	maxPaths = 200
	maxPath  = 4_096
)

func land(r *reader) Payload {
	p := &Land{}
	r.lit(`{"landing":`)
	start := r.pos
	r.lit(`{"authorizationId":`)
	p.Authorization = readID[AuthorizationID](r)
	r.lit(`,"changedPaths":`)
	at := r.pos
	p.Paths = list(r, 1, maxPaths, func(r *reader) string { return r.text(maxPath) })
	cut1 := r.pos
	r.lit(`,"changedPathsSha256":`)
	p.PathsDigest = r.digest()
	rest1 := r.pos
	r.lit(`,"landingId":`)
	p.Landing = readID[LandingID](r)
	cut2 := r.pos
	r.lit(`,"landingSha256":`)
	p.Digest = r.digest()
	rest2 := r.pos
	r.lit(`,"rerouteFrameId":`)
	p.Reroute = readID[FrameID](r)
	r.lit(`,"result":`)
	p.Result = text(r)
	r.lit(`,"verification":`)
	from := r.pos
	p.Verification = list(r, 0, canon.MaxItems, text)
	to := r.pos
	r.lit(`,"verificationFrameId":`)
	p.Verify = readID[FrameID](r)
	cut3 := r.pos
	r.lit(`,"verificationSha256":`)
	p.VerifyDigest = r.digest()
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	switch {
	case !r.ok():
		return p
	case !rising(p.Paths, asString[string]) || !rising(p.Verification, asString[string]):
		r.fail("paths and verification in rising order")
	case p.Reroute == p.Verify:
		r.fail("two frames for the two debts")
	}
	r.verify(p.PathsDigest, "changed paths", `{"changedPaths":`, r.s[at:cut1], `,"domain":"developer/v8/landing-changed-paths"}`)
	r.verify(p.VerifyDigest, "verification", `{"domain":"developer/v8/landing-verification","verification":`, r.s[from:to], "}")
	r.verify(p.Digest, "landing", `{"changedPathsSha256":"`, string(p.PathsDigest), `","domain":"developer/v8/implementation-landing","fields":`,
		r.s[start:cut1], r.s[rest1:cut2], r.s[rest2:cut3], `},"verificationSha256":"`, string(p.VerifyDigest), `"}`)
	return p
}
