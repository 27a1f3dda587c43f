package run

import "github.com/atoll-run/atoll/internal/core/model"

// View selects the part of a conversation that a model sees. The zero View is all of it.
type View struct {
	// Skipped is how many items at the start are omitted, except the user's last message of the
	// input.
	Skipped int `json:",omitzero"`
	// Shortened is how many of the oldest tool results, after the skipped items, are replaced by a
	// note.
	Shortened int `json:",omitzero"`
}

// shortened replaces a tool result in a model request.
const shortened = "[This result was omitted because the conversation is too long. Call the tool again if you need it.]"

// leftOut replaces the start of a conversation in a model request.
const leftOut = "[The beginning of this conversation was omitted because it is too long.]"

// Rough sizes in tokens. A provider's count of the last request corrects them.
const (
	bytesPerToken = 4
	imageTokens   = 1500
	itemTokens    = 8 // of what stands around each item
)

// ModelRequest returns the model request of the last Asked entry.
func (s *State) ModelRequest() model.Request {
	r := s.Request
	q := model.Request{
		Instructions: r.Instructions, Items: s.visible(s.view), ToolChoice: r.Choice,
		Reasoning: r.Reasoning, Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Format: r.Format, CacheKey: r.CacheKey,
	}
	for i := range r.Tools {
		q.Tools = append(q.Tools, r.Tools[i].Tool)
	}
	if len(q.Tools) > 0 {
		q.ParallelToolCalls = new(r.Parallel)
	}
	if forces := r.Choice.Mode == model.ToolRequired || r.Choice.Mode == model.ToolNamed; forces && s.Steps > 1 {
		q.ToolChoice = model.ToolChoice{}
	}
	q.MaxOutputTokens = s.Bound(0)
	return q
}

// Bound returns the limit, in tokens, of the next answer: most, lowered to what the run's limits
// leave. 0 means no limit.
func (s *State) Bound(most int) int {
	l := &s.Request.Limits
	if left := int(l.OutputTokens - s.said()); l.OutputTokens > 0 && (most == 0 || left < most) {
		most = left
	}
	if l.Session.Tokens != nil {
		if left := int(max(leastAnswer, *l.Session.Tokens-s.tokens())); most == 0 || left < most {
			most = left
		}
	}
	return most
}

// leastAnswer is the smallest answer limit, in tokens, that every provider accepts.
const leastAnswer = 16

// visible returns the conversation as the model sees it.
func (s *State) visible(v View) []model.Item {
	if v == (View{}) && s.summary == nil {
		return s.Conversation
	}
	v.Skipped = max(v.Skipped, s.base())
	out := make([]model.Item, 0, len(s.Conversation)-v.Skipped+2)
	if s.summary != nil {
		out = append(out, s.summary.Item())
	}
	// After the input, what is the user's in form is the platform's.
	switch asked := s.question(); {
	case asked >= 0 && asked < v.Skipped:
		out = append(out, s.Conversation[asked])
	case len(out) == 0 && v.Skipped > 0 && v.Skipped < len(s.Conversation) && !byUser(&s.Conversation[v.Skipped]): // providers want the user first
		out = append(out, model.Text(model.User, leftOut))
	}
	left := v.Shortened
	for _, it := range s.Conversation[v.Skipped:] {
		if it.Result != nil && left > 0 {
			left--
			short := *it.Result
			short.Parts = []model.Part{{Kind: model.PartText, Text: shortened}}
			it = model.Item{Result: &short}
		}
		out = append(out, it)
	}
	return out
}

// question returns the index of the user's last message; -1 for none.
func (s *State) question() int {
	for i := min(len(s.Request.Input), len(s.Conversation)) - 1; i >= 0; i-- {
		if byUser(&s.Conversation[i]) {
			return i
		}
	}
	return -1
}

// fit returns the largest view that fits the model's context. It first shortens the oldest results
// and then skips the start. smaller requests less than the last view. ok is false if nothing fits.
func (s *State) fit(spec *model.Spec, smaller bool) (v View, ok bool) {
	room := roomOf(spec)
	if smaller {
		if last := s.estimate(s.view) * 3 / 4; room == 0 || last < room {
			room = last
		}
	}
	if room == 0 || s.estimate(View{}) <= room {
		return View{}, true
	}
	if !s.Request.Truncate {
		return View{}, true // this is an estimate: the provider decides
	}
	for v.Shortened < s.oldResults() {
		v.Shortened++
		if s.estimate(v) <= room {
			return v, true
		}
	}
	for i := s.base() + 1; i < len(s.Conversation); i++ {
		if s.Conversation[i-1].Result != nil {
			v.Shortened = max(0, v.Shortened-1)
		}
		if !s.boundary(i) {
			continue
		}
		v.Skipped = i
		if s.estimate(v) <= room {
			return v, true
		}
	}
	return View{}, false
}

// roomOf returns how many tokens of a request the model reads; 0 if unknown.
func roomOf(spec *model.Spec) int64 {
	room := int64(spec.Context)
	return room - min(room/4, max(int64(spec.MaxOutput), 1024)) // for the answer
}

// boundary reports whether a conversation may begin at item i. The parts of one answer and the
// results of its calls must stay together.
func (s *State) boundary(i int) bool {
	before := &s.Conversation[i-1]
	return s.Conversation[i].Result == nil && (before.Result != nil || before.Message != nil && before.Message.Role != model.Assistant)
}

// oldResults returns how many results came before the model's last answer.
func (s *State) oldResults() (n int) {
	last := len(s.Conversation)
	for last > 0 && s.Conversation[last-1].Result != nil {
		last--
	}
	for i := s.base(); i < last; i++ {
		if s.Conversation[i].Result != nil {
			n++
		}
	}
	return n
}

func byUser(it *model.Item) bool { return it.Message != nil && it.Message.Role == model.User }

// estimate estimates the tokens of a request with a view.
func (s *State) estimate(v View) int64 {
	n := int64(len(s.Request.Instructions)) / bytesPerToken
	for i := range s.Request.Tools {
		n += toolTokens(&s.Request.Tools[i].Tool)
	}
	for _, it := range s.visible(v) {
		n += tokens(&it)
		if s.Request.PlaceFiles { // most models are told where they are, no more
			for _, p := range filesOf(&it) {
				n -= int64(len(p.Data)) / bytesPerToken
			}
		}
	}
	return n
}

func toolTokens(t *model.Tool) int64 {
	bytes := len(t.Description) + len(t.Parameters)
	if t.Custom != nil {
		bytes += len(t.Custom.Grammar)
	}
	return int64(bytes)/bytesPerToken + itemTokens
}

func tokens(it *model.Item) int64 {
	bytes, images := 0, 0
	parts := func(all []model.Part) {
		for i := range all {
			bytes += len(all[i].Text)
			switch all[i].Kind {
			case model.PartImage:
				images++
			case model.PartFile:
				bytes += len(all[i].Data)
			}
		}
	}
	switch {
	case it.Message != nil:
		parts(it.Message.Parts)
	case it.Result != nil:
		parts(it.Result.Parts)
	case it.Call != nil:
		bytes += len(it.Call.Arguments) + len(it.Call.Name)
	case it.Reasoning != nil:
		bytes += len(it.Reasoning.Text) + len(it.Reasoning.State.Data)
	}
	return int64(bytes/bytesPerToken + images*imageTokens + itemTokens)
}
