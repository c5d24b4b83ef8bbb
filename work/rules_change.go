package work

import "slices"

func (s *step) closeScope(p *CloseScope) *Refusal {
	sc := s.scope
	switch {
	case sc.authorization != nil || sc.active != nil:
		return deny(ScopeCloseBlocked, "an authorization or an invocation is active")
	case sc.rules == Strict && sc.openFrames.len() > 0:
		return deny(ScopeCloseBlocked, "a frame has no conclusion") // DV-402
	case sc.rules == Strict && (sc.reroute || sc.verify):
		return deny(ScopeCloseBlocked, "a debt is pending") // DV-402
	}
	s.editScope().closure = p
	s.state.open.remove(s.own, sc.id)
	return nil
}

func (s *step) authorize(p *Authorize) *Refusal {
	if !slices.ContainsFunc(s.causes, func(a *Accepted) bool {
		c, ok := a.payload.(*Conclude)
		return ok && a.Scope == s.scope.id && c.Frame == p.Frame && c.digest == p.Conclusion
	}) {
		return refuse(CausalityMissing, "no cause is the conclusion of frame %s", p.Frame)
	}
	sc := s.scope
	if sc.authorization != nil || sc.landed.has(p.Authorization) || sc.reroute || sc.verify || sc.active != nil || sc.openFrames.len() > 0 {
		return deny(AuthorizationBlocked, "an authorization, debt, invocation or open frame is in the way, or the id is used up")
	}
	f, found := sc.frames.get(p.Frame)
	if !found || f.asked.Frame.Revision != p.Revision || f.conclusion.digest != p.Conclusion {
		return deny(AuthorizationStale, "the authorization does not match frame %s as it is", p.Frame)
	}
	if sc.rules == Strict && sc.landings.n > 0 && f.concludedAt < sc.landings.top.item.sequence {
		return deny(AuthorizationStale, "frame %s was concluded before the last landing", p.Frame) // DV-405
	}
	sc = s.editScope()
	sc.authorization, sc.authorizedBy = p, s.Ref()
	return nil
}

func (s *step) land(p *Land) *Refusal {
	if !slices.ContainsFunc(s.causes, func(a *Accepted) bool {
		c, ok := a.payload.(*Authorize)
		return ok && a.Scope == s.scope.id && c.Authorization == p.Authorization
	}) {
		return refuse(CausalityMissing, "no cause is authorization %s", p.Authorization)
	}
	sc := s.scope
	if sc.authorization == nil {
		return deny(LandingBlocked, "no authorization is active")
	}
	if sc.authorization.Authorization != p.Authorization || sc.frames.has(p.Reroute) || sc.frames.has(p.Verify) {
		return deny(LandingStale, "authorization %s is active, or a frame of the debts exists", sc.authorization.Authorization)
	}
	sc = s.editScope()
	sc.authorization, sc.authorizedBy = nil, EventRef{}
	sc.landed.set(s.own, p.Authorization, struct{}{})
	sc.landings.push(&landing{Land: p, ref: s.Ref(), sequence: s.Sequence})
	sc.reroute, sc.verify = true, true
	return nil
}
