// Package grader asks models to judge whether a run reached its outcome, by the outcome's rubric
// and the result of its check. It also has the parts that other reviews share.
package grader

import (
	"encoding/json"
	"strings"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Limits of reviews.
const (
	MaxFeedback = 4 << 10   // bytes
	MaxTokens   = 4096      // of a verdict
	MaxReviewed = 128 << 10 // bytes of each reviewed text
)

// Say returns a message from the platform to a model that continues. It has the user role
// because providers accept no other after an answer.
func Say(text string) *model.Item {
	it := model.Text(model.User, "[This is from the platform, not from the user. "+text+"]")
	return &it
}

// Verdict decodes the JSON object in a model's answer, which may have text around it. It
// reports whether it found one.
func Verdict(text string, into any) bool {
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	return from >= 0 && to > from && json.Unmarshal([]byte(text[from:to+1]), into) == nil
}

// Answer returns the model's last completed answer in a run, cut to MaxReviewed bytes.
func Answer(s *run.State) (answer string) {
	for i := range s.Output {
		if m := s.Output[i].Message; m != nil && s.Output[i].Status == run.ItemCompleted {
			answer = model.Joined(m.Parts)
		}
	}
	return wire.Clip(answer, MaxReviewed)
}
