package run

import "github.com/atoll-run/atoll/internal/core/model"

// Left is what a session's budget had left when a turn began; nil for no bound.
type Left struct {
	Tokens *int64       `json:",omitzero"`
	Cost   *model.Money `json:",omitzero"`
}

// spent reports whether the turn has used up what was left.
func (l *Left) spent(s *State) bool {
	return l.Tokens != nil && s.tokens() >= *l.Tokens || l.Cost != nil && s.Spent() >= *l.Cost
}

func (l *Left) end() Next {
	return incomplete(SessionBudget, "the budget of the session is used up: raise it to continue")
}

// tokens are all that the run has used, with those that it handed work to.
func (s *State) tokens() int64 {
	all := s.AllUsage()
	return all.Input + all.Output
}

// Tokens is what the session's budget leaves; nil for no bound.
func (s *State) Tokens() *int64 {
	most := s.Request.Limits.Session.Tokens
	if most == nil {
		return nil
	}
	left := *most - s.tokens()
	return &left
}

// Money is what the run's limits leave for calls; nil for no bound.
func (s *State) Money() *model.Money {
	l := &s.Request.Limits
	most := l.Cost
	if c := l.Session.Cost; c != nil && (most == 0 || *c < most) {
		most = *c
	} else if most == 0 {
		return nil
	}
	left := most - s.Spent()
	return &left
}
