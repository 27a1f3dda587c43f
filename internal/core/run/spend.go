package run

import "github.com/atoll-run/atoll/internal/core/model"

// Lost is an answer on the side, of a skill, a grader or a summary, that a provider began and did
// not finish. The run is charged for it.
type Lost struct {
	Model string
	Usage model.Usage
	Cost  model.Cost
}

// Spend is the usage of an answer or of the part of it that came. The provider's counts hold.
// Where there are none, the request counts asked tokens; an answer that was cut counts at least
// the text that was streamed.
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

// RequestTokens is about how many tokens a request has.
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

// said is how many tokens the answers have, which Limits.OutputTokens bounds: without summaries,
// and without answers that did not come to their end.
func (s *State) said() int64 { return s.Usage.Output - s.beside }

// AskedTokens is about how many tokens the last request to a model has.
func (s *State) AskedTokens() int64 { return s.estimate(s.view) }
