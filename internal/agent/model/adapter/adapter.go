// Package adapter registers the wire protocols of providers and opens the models of records. It
// holds providers to the contract of package model.
package adapter

import (
	"fmt"
	"net/http"

	"github.com/atoll-run/atoll/internal/agent/model/anthropic"
	"github.com/atoll-run/atoll/internal/agent/model/freetext"
	"github.com/atoll-run/atoll/internal/agent/model/openai"
	"github.com/atoll-run/atoll/internal/core/model"
)

func init() { model.Register(openai.ResponsesProtocol, openai.ChatProtocol, anthropic.Protocol) }

// Open returns a Model that asks the model of a record through rt, within bounds.
func Open(r model.Record, rt http.RoundTripper, b model.Bounds) (model.Model, error) {
	p := r.Provider.Protocol()
	if p == nil {
		return nil, fmt.Errorf("model %s: unknown provider %q", r.ID, r.Provider)
	}
	m := p.Open(r, rt)
	if !p.CustomTools || !r.Can(model.CustomTools) {
		m = freetext.New(m)
	}
	return model.Guard(m, r.Spec, b), nil
}
