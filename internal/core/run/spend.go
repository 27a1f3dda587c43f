package run

import "github.com/atoll-run/atoll/internal/core/model"

// Lost is an unfinished provider answer outside the conversation: of a skill, a grader or a
// summary. The run pays for it.
type Lost struct {
	Model string
	Usage model.Usage
	Cost  model.Cost
}

// Spend returns the usage of a complete or partial answer. It prefers the provider's counts.
// Without them, the request counts as asked tokens, and a partial answer counts at least its
// streamed text.
func Spend(a *model.Answer, asked int64) model.Usage {
	u := a.Usage
	if a.Counted && a.Stop != "" {
		return u
	}
	if u.Input == 0 {
		u.Input, u.Estimated = asked, asked
	}
	streamed := int64(0)
	for i := range a.Items {
		streamed += tokens(&a.Items[i]) - itemTokens + 1
	}
	if more := min(streamed, model.MaxTokens) - u.Output; more > 0 {
		u.Output, u.Estimated = u.Output+more, u.Estimated+more
	}
	return u
}

// RequestTokens estimates the tokens of a request.
func RequestTokens(q *model.Request) int64 {
	n := int64(len(q.Instructions)) / bytesPerToken
	for i := range q.Tools {
		n += toolTokens(&q.Tools[i])
	}
	for i := range q.Items {
		n += tokens(&q.Items[i])
	}
	return n
}

// said returns the answer tokens that Limits.OutputTokens limits, without summaries and unfinished
// answers.
func (s *State) said() int64 { return s.Usage.Output - s.beside }

// AskedTokens estimates the tokens of the last model request.
func (s *State) AskedTokens() int64 { return s.estimate(s.view) }
