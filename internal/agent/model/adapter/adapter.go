// Package adapter opens the models of records: it chooses the wire protocol, and holds what
// the provider sends to the contract of package model.
package adapter

import (
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/model/anthropic"
	"github.com/atoll-run/atoll/internal/agent/model/freetext"
	"github.com/atoll-run/atoll/internal/agent/model/openai"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Open returns what asks the model of a record; rt reaches its provider.
func Open(r model.Record, rt http.RoundTripper, b model.Bounds) (model.Model, error) {
	var m model.Model
	switch r.Provider {
	case model.OpenAI:
		m = openai.NewResponses(r, rt)
	case model.OpenAIChat:
		m = openai.NewChat(r, rt)
	case model.Anthropic:
		m = anthropic.New(r, rt)
	default:
		return nil, fmt.Errorf("model %s: unknown provider %q", r.ID, r.Provider)
	}
	if !r.Can(model.CustomTools) || r.Provider == model.Anthropic { // whose protocol has no such tools
		m = freetext.New(m)
	}
	return model.Guard(m, r.Spec, b), nil
}
