package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Next says what a run does next. Exactly one field is set, or none once it has ended.
type Next struct {
	// Lost says that a model was asked and that the outcome is not on record: a Failed
	// entry without a Failure comes next.
	Lost bool
	Ask  *Asked // an entry to record before the model is asked
	// Calls are to be made side by side, those that have not begun under a Calling entry. Each
	// has its Cost.
	Calls []Pending
	Wait  time.Time
	End   *End
	// Compact is to be summarized before a model is asked.
	Compact *Compacting
	// Check is set beside End where skills, or who evaluates the outcome, have a say before it.
	Check bool
	// Evaluate is set beside End where an evaluation begins before it, once skills have had their say.
	Evaluate *Evaluating
}

// Bounds of retries.
const (
	maxTries  = 5 // of a model in one step
	maxWait   = 5 * time.Minute
	firstWait = 500 * time.Millisecond // doubled with each try
	lastWait  = 8 * time.Second
	// longestWait bounds the waits of a run with RetryFor.
	longestWait = 30 * time.Second
)

// maxFailures is how many times in a row a model may make the same call, which fails.
const maxFailures = 4

// Known is what Next goes by beside the log.
type Known struct {
	Spec func(name string) model.Spec // of a model
	// Price is what a call of a tool costs at least; nil for nothing.
	Price  func(t *Tool) model.Money
	Window model.Money // of the sandbox
}

// Next returns what is to be done now.
func (s *State) Next(now time.Time, known Known) Next {
	switch {
	case s.End != nil:
		return Next{}
	case s.asked != nil:
		return Next{Lost: true}
	}
	if d := s.Request.Limits.Duration; d > 0 && now.Sub(s.Began) >= d {
		return incomplete(MaxDuration, "the run took longer than %s", d)
	}
	if s.ends != nil {
		if begun := slices.DeleteFunc(s.serverCalls(), func(p Pending) bool { return !p.Begun }); len(begun) > 0 {
			return Next{Calls: begun}
		}
		return Next{End: s.ends}
	}
	if s.stop != "" {
		if calls := s.serverCalls(); len(calls) > 0 {
			return s.nextCalls(calls, known)
		}
		if s.open() > 0 {
			return end(RequiresAction, Done, "")
		}
		if len(s.pending) == 0 {
			return s.stopped(now)
		}
		if s.failures >= maxFailures {
			return incomplete(RepeatedFailure, "the model made the same failing call of %s %d times in a row", s.pending[len(s.pending)-1].Call.Name, s.failures)
		}
	}
	return s.nextAsk(now, known.Spec)
}

func end(status Status, r Reason, format string, args ...any) Next {
	return Next{End: &End{Status: status, Reason: r, Message: fmt.Sprintf(format, args...)}}
}

func incomplete(r Reason, format string, args ...any) Next {
	return end(Incomplete, r, format, args...)
}

// serverCalls are the calls without a result that are not the client's to make or approve.
func (s *State) serverCalls() (calls []Pending) {
	for _, p := range s.pending {
		if p.result == nil && !p.client() {
			calls = append(calls, p)
		}
	}
	return calls
}

func (s *State) nextCalls(calls []Pending, known Known) Next {
	if limit := s.Request.Limits.Calls; limit > 0 {
		left := limit - s.Calls
		calls = slices.DeleteFunc(calls, func(p Pending) bool {
			if p.Begun {
				return false
			}
			left--
			return left < 0
		})
		if len(calls) == 0 {
			return incomplete(MaxCalls, "the model asked for more than %d tool calls", limit)
		}
	}
	if !s.Request.Parallel {
		calls = calls[:1]
	}
	return s.afford(calls, known)
}

// afford prices calls, and leaves out the first one that the run's limits have no money or
// tokens for, with those after it. What has begun is paid for already.
func (s *State) afford(calls []Pending, known Known) Next {
	s.price(calls, known)
	l := &s.Request.Limits
	left := l.Cost - s.Spent()
	own := model.Money(0) // of the session's budget
	if l.Session.Cost != nil {
		own = *l.Session.Cost - s.Spent()
	}
	for i := range calls {
		if calls[i].Begun {
			left, own = left-calls[i].Cost, own-calls[i].Cost
		}
	}
	for i := range calls {
		p := &calls[i]
		if p.Begun {
			continue
		}
		end, dear := s.tooDear(p, left)
		if !dear && p.Cost > 0 && (l.Session.spent(s) || l.Session.Cost != nil && p.Cost > own) {
			end, dear = l.Session.end(), true
		}
		if dear {
			if calls = Affordable(calls, i); len(calls) == 0 {
				return end
			}
			break
		}
		left, own = left-p.Cost, own-p.Cost
	}
	return Next{Calls: calls}
}

// price sets the cost of calls. The window of a sandbox is a part of one of them, where it is
// certain that none is open.
func (s *State) price(calls []Pending, known Known) {
	first := -1
	for i := range calls {
		p := &calls[i]
		if p.Tool == nil {
			continue
		}
		if known.Price != nil {
			p.Cost = known.Price(p.Tool)
		}
		if p.Tool.Window && (first < 0 || p.Begun && !calls[first].Begun) {
			first = i
		}
	}
	if first >= 0 && s.Windows == 0 && s.Request.Before == 0 {
		calls[first].Cost = calls[first].Cost.Plus(known.Window)
	}
}

// tooDear reports whether the run's limits have nothing left for a call with a price, and how
// the run ends when it makes none.
func (s *State) tooDear(p *Pending, left model.Money) (end Next, dear bool) {
	l, used := s.Request.Limits, s.Usage.Input+s.Usage.Output
	switch {
	case p.Cost == 0:
	case l.Tokens > 0 && used >= l.Tokens:
		return incomplete(MaxTokens, "the run used %d tokens", used), true
	case l.Cost > 0 && p.Cost > left:
		return incomplete(MaxCost, "the run cost %s of %s dollars, and a call of %s costs %s", s.Spent(), l.Cost, p.Call.Name, p.Cost), true
	}
	return Next{}, false
}

// Affordable are the calls before one that is too dear, and those after it that have begun.
func Affordable(calls []Pending, dear int) []Pending {
	begun := slices.DeleteFunc(slices.Clone(calls[dear:]), func(p Pending) bool { return !p.Begun })
	return slices.Concat(calls[:dear], begun)
}

// stopped is how a run ends after an answer without calls.
func (s *State) stopped(now time.Time) Next {
	if s.Progress.Open {
		return s.grade(now)
	}
	switch s.stop {
	case model.StopMaxTokens:
		if s.Request.Limits.Session.spent(s) {
			return s.Request.Limits.Session.end()
		}
		return incomplete(MaxOutputTokens, "the answer reached the limit of its tokens")
	case model.StopFilter:
		return incomplete(ContentFilter, "the provider's content filter cut the answer")
	}
	n := end(Completed, Done, "")
	if unmet := s.unmet(); unmet.End != nil {
		n = unmet
	}
	if n.Check = s.checks(); s.evaluates() {
		n.Evaluate = &Evaluating{s.Progress.next}
	}
	return n
}

func (s *State) nextAsk(now time.Time, specs func(string) model.Spec) Next {
	l := s.Request.Limits
	ask := &Asked{Step: s.Steps + 1, Try: 1, Model: s.Request.Models[0]}
	smaller := false
	switch {
	case s.failure == nil:
		if s.Steps > 0 && slices.Contains(s.Request.Models, s.Model) {
			ask.Model = s.Model
		}
		if l.Steps > 0 && s.Steps >= l.Steps {
			return incomplete(MaxSteps, "the model was asked %d times and wants more tool calls", s.Steps)
		}
	case !s.again.IsZero():
		if now.Before(s.again) {
			return Next{Wait: s.again}
		}
		ask.Step, ask.Try, ask.Model = s.Steps, s.try+1, s.Model
		smaller = s.failure.Failure == model.ContextTooLong && !s.shortened
	default:
		i := slices.Index(s.Request.Models, s.Model) + 1
		if i == len(s.Request.Models) || s.failure.Failure == model.Rejected {
			return s.modelFailed()
		}
		ask.Step, ask.Model = s.Steps, s.Request.Models[i]
	}
	if over := s.over(); over.End != nil {
		return over
	}
	spec := specs(ask.Model)
	if c := s.compacts(ask.Model, &spec, smaller); c != nil {
		return Next{Compact: c}
	}
	var ok bool
	if ask.View, ok = s.fit(&spec, smaller); !ok {
		return end(Failed, ContextLength, "the conversation is longer than model %s reads, and truncation does not make it fit", ask.Model)
	}
	return Next{Ask: ask}
}

// over is how a run ends that has used up what it may before a model is asked; it is empty for
// one that has not.
func (s *State) over() Next {
	l := &s.Request.Limits
	switch {
	case l.Session.spent(s):
		return l.Session.end()
	case l.OutputTokens > 0 && s.said() >= l.OutputTokens:
		return incomplete(MaxOutputTokens, "the answers have %d tokens", s.said())
	case l.Tokens > 0 && s.Usage.Input+s.Usage.Output >= l.Tokens:
		return incomplete(MaxTokens, "the run used %d tokens", s.Usage.Input+s.Usage.Output)
	case l.Cost > 0 && s.Spent() >= l.Cost:
		return incomplete(MaxCost, "the run cost %s dollars", s.Spent())
	}
	return Next{}
}

func (s *State) modelFailed() Next {
	r := ModelError
	if s.failure.Failure == model.ContextTooLong {
		r = ContextLength
	}
	if s.try > 1 && s.Request.RetryFor != nil && !s.troubled.IsZero() {
		return end(Failed, r, "%s; asked %d times in %s", s.failure.Message, s.try, s.failedAt.Sub(s.troubled).Round(time.Second))
	}
	return end(Failed, r, "%s", s.failure.Message)
}

// Retry returns the entry for a model that did not answer because of err. shown is what
// readers have seen of the answer.
func (s *State) Retry(now time.Time, err *model.Error, shown []model.Item) *ModelFailed {
	f := &ModelFailed{Failure: err.Failure, Message: err.Msg, Shown: shown}
	switch {
	case err.Failure == model.ContextTooLong && s.shrinks() && s.try < maxTries:
		f.Again = now
	case err.Retryable():
		f.Again = s.retryAt(now, err.RetryAfter)
	}
	return f
}

// shrinks reports whether the model can be asked again with less of the conversation.
func (s *State) shrinks() bool {
	return s.Request.Truncate || s.compacts(s.Model, &model.Spec{}, true) != nil
}

// retryAt is when a model in trouble is asked again; zero for never.
func (s *State) retryAt(now time.Time, after time.Duration) time.Time {
	patience, most := s.Request.RetryFor, longestWait
	if patience == nil || slices.Index(s.Request.Models, s.Model) < len(s.Request.Models)-1 {
		patience, most = nil, lastWait
	}
	wait := min(firstWait<<min(s.try-1, 10), most)
	wait = max(wait+time.Duration(rand.Int64N(int64(wait/4))), after)
	if patience == nil {
		if s.try >= maxTries || after > maxWait {
			return time.Time{}
		}
		return now.Add(wait)
	}
	left := *patience
	if !s.troubled.IsZero() {
		left -= now.Sub(s.troubled)
	}
	if left <= 0 || after > left {
		return time.Time{}
	}
	return now.Add(min(wait, left)) // the last try is at the end
}

// Interrupted returns the entry for a model whose answer was lost with the process that
// asked it. shown is what readers have seen of it.
func (s *State) Interrupted(now time.Time, shown []model.Item) *ModelFailed {
	return &ModelFailed{Message: "the process that asked the model is gone", Shown: shown, Again: now}
}
