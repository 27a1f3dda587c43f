// Package grader has models judge the work of runs: outcomes, by their rubric and by what their
// check came to. What it shares with other reviews is here, too.
package grader

import (
	"encoding/json"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Bounds of reviews.
const (
	MaxFeedback = 4 << 10   // bytes
	MaxTokens   = 4096      // of a verdict
	MaxReviewed = 128 << 10 // bytes of each text that is reviewed
)

// Say is what the platform tells a model that goes on. It is the user's in form: providers take no
// other after an answer.
func Say(text string) *model.Item {
	it := model.Text(model.User, "[This is from the platform, not from the user. "+text+"]")
	return &it
}

// Verdict reads the JSON object that a model was asked for, which may stand in other text. It
// reports whether there is one.
func Verdict(text string, into any) bool {
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	return from >= 0 && to > from && json.Unmarshal([]byte(text[from:to+1]), into) == nil
}

// Answer is the last answer of the model in a run.
func Answer(s *run.State) (answer string) {
	for i := range s.Output {
		if m := s.Output[i].Message; m != nil && s.Output[i].Status == run.ItemCompleted {
			answer = model.Joined(m.Parts)
		}
	}
	return wire.Clip(answer, MaxReviewed)
}
