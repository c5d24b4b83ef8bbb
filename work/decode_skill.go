package work

import "github.com/reeve-run/reeve/canon"

func recordAssignment(r *reader) Payload {
	p := &RecordAssignment{}
	r.lit(`{"assignment":`)
	start := r.pos
	r.lit(`{"applicabilityBasisSha256":`)
	p.Applies = r.digest()
	r.lit(`,"assignmentId":`)
	p.Assignment = readID[AssignmentID](r)
	cut := r.pos
	r.lit(`,"assignmentRevisionSha256":`)
	p.Digest = r.digest()
	rest := r.pos
	r.lit(`,"authority":"contribution-only","contextBasisSha256":`)
	p.Context = r.digest()
	r.lit(`,"expectedContribution":`)
	p.Expected = text(r)
	r.lit(`,"limitations":`)
	p.Limits = r.texts(0)
	r.lit(`,"parentFrameId":`)
	p.Frame = readID[FrameID](r)
	r.lit(`,"parentFrameRevision":`)
	p.Revision = r.integer()
	r.lit(`,"returnContract":"developer-skill-return/v1","skillCapabilityId":`)
	p.Capability = readID[SubjectID](r)
	r.lit(`,"skillRevisionSha256":`)
	p.Skill = r.digest()
	r.lit(`,"subquestion":`)
	p.Question = text(r)
	r.lit(`,"targetObligationIds":`)
	p.Targets = risingIDs[ObligationID](r, 1, canon.MaxItems)
	r.lit("}")
	end := r.pos
	p.text = r.s[start:end]
	r.lit(`,"basisId":`)
	p.Basis = readID[BasisID](r)
	r.lit("}")
	r.verify(p.Digest, "assignment", `{"domain":"developer.ready-skill-assignment/v1","value":`, r.s[start:cut], r.s[rest:end], "}")
	return p
}

func startInvocation(r *reader) Payload {
	p := &StartInvocation{}
	r.lit(`{"assignmentId":`)
	p.Assignment = readID[AssignmentID](r)
	r.lit(`,"invocationId":`)
	p.Invocation = readID[InvocationID](r)
	r.lit("}")
	return p
}

func settle(r *reader) Payload {
	p := &Settle{}
	r.lit(`{"settlement":`)
	start := r.pos
	r.lit(`{"assignmentId":`)
	p.Assignment = readID[AssignmentID](r)
	failed := r.has(`,"failure":`)
	if failed {
		at := r.pos
		p.Outcome = failure(r)
		p.Outcome.details = r.s[at:r.pos]
	}
	r.lit(`,"invocationId":`)
	p.Invocation = readID[InvocationID](r)
	switch {
	case failed:
		r.lit(`,"kind":"capability-failed"`)
	case r.has(`,"kind":"lifecycle","lifecycle":`):
		p.Outcome = lifecycle(r)
	default:
		r.lit(`,"kind":"returned","value":`)
		at := r.pos
		p.Outcome = returned(r)
		p.Outcome.details = r.s[at:r.pos]
	}
	r.lit("}")
	p.text = r.s[start:r.pos]
	r.lit("}")
	if r.ok() {
		p.support = digestOf(`{"domain":"developer/v8/skill-return-support","settlement":`, p.text, "}")
	}
	return p
}

// The kinds of blocker there are. The first is left by opening a child frame.
const (
	blockChild      = "child-frame"
	blockFailure    = "capability-failure"
	blockDependency = "dependency"
	blockContext    = "needs-context"
)

func failure(r *reader) (o Outcome) {
	o.Blocks = blockFailure
	switch {
	case r.has(`{"kind":"resolver-error","message":`):
		o.Name = "capability-resolver-error"
		o.Reason = text(r)
	case r.has(`{"kind":"timeout","timeoutMs":`):
		o.Name = "capability-timeout"
		if o.TimeoutMS = r.integer(); o.TimeoutMS < 1 {
			r.fail("a time of at least 1 ms")
		}
	default:
		o.Name = "capability-invalid-or-silent-return"
		r.lit(`{"kind":"invalid-or-silent-return","reason":`)
		o.Reason = text(r)
	}
	r.lit("}")
	return o
}

var lifecycleKinds = []string{"cancelled", "superseded", "stale"}

func lifecycle(r *reader) (o Outcome) {
	r.lit(`{"executionUncertain":`)
	if o.Uncertain = r.has("true"); !o.Uncertain {
		r.lit("false")
	}
	r.lit(`,"kind":`)
	o.Name = "lifecycle-" + choice(r, lifecycleKinds)
	r.lit(`,"reason":`)
	o.Reason = text(r)
	r.lit("}")
	return o
}

func returned(r *reader) (o Outcome) {
	switch {
	case r.has(`{"applicability":`):
		return contribution(r)
	case r.has(`{"dependencyId":`):
		o.Name, o.Blocks = "returned-dependency", blockDependency
		o.Dependency = readID[DependencyID](r)
		r.lit(`,"kind":"dependency","question":`)
		o.Question = text(r)
		r.lit(`,"reason":`)
		o.Reason = text(r)
	case r.has(`{"kind":"not-applicable","reason":`):
		o.Name = "returned-not-applicable"
		o.Reason = text(r)
	case r.has(`{"kind":"needs-context","missingContext":`):
		o.Name, o.Blocks = "returned-needs-context", blockContext
		o.Missing = r.texts(1)
	default:
		o.Name = "returned-abort"
		r.lit(`{"kind":"abort","reason":`)
		o.Reason = text(r)
		r.lit("}")
		return o
	}
	r.lit(`,"targetObligationIds":`)
	o.Targets = risingIDs[ObligationID](r, 1, canon.MaxItems)
	r.lit("}")
	return o
}

// contribution is a returned contribution behind the name of its first member. Its
// uses are distinct, in any order.
func contribution(r *reader) (o Outcome) {
	o.Name = "returned-contribution"
	o.Applicability = text(r)
	r.lit(`,"claim":`)
	o.Claim = text(r)
	r.lit(`,"kind":"contribution","limitations":`)
	o.Limits = r.texts(0)
	r.lit(`,"targetUses":`)
	o.Uses = list(r, 1, canon.MaxItems, targetUse)
	if r.ok() && repeats(o.Uses) {
		r.fail("uses that differ")
	}
	r.lit("}")
	for _, u := range o.Uses {
		o.Targets = append(o.Targets, u.Obligation)
	}
	return o
}
