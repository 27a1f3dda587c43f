package response

import (
	"context"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/usage"
)

// Bounds of a request.
const (
	maxModels       = 5
	maxMetadata     = 16
	maxMetadataKey  = 64  // characters
	maxMetadataText = 512 // characters
	maxClientPairs  = 64
	maxClientBytes  = 64 << 10
	maxCacheKey     = 64
	minOutputTokens = 16
	maxDuration     = 24 * time.Hour
	maxSchema       = 256 << 10 // bytes
	maxTotalTokens  = 1_000_000_000_000
	minCost         = 1e-6 // US dollars
	maxCost         = 1_000_000
)

// Fields that a request can include in output items.
const (
	IncludeOutputs   = "code_interpreter_call.outputs"
	IncludeSources   = "web_search_call.action.sources" // which are always there
	includeReasoning = "reasoning.encrypted_content"
)

// Options are the fields of a request that stand for themselves. Nil fields were omitted.
type Options struct {
	Parallel, Background, Store, Truncate *bool
	Instructions, Previous                *string
	Temperature, TopP, MaxCost            *float64
	MaxOutputTokens, MaxToolCalls         *int64
	MaxSteps, MaxTotalTokens              *int64
	Effort, Summary                       *string
	Compact                               []*int64 // thresholds
	Include                               []string
	Metadata, ClientMetadata              map[string]string
	CacheKey, SafetyIdentifier            *string
	Obfuscation                           *bool
}

// Plan builds the run of a new response. An API gives it the parts of a request in their order: models,
// input, tools, choice and format. Each method rejects a part that is invalid.
type Plan struct {
	s      *Service
	ctx    context.Context
	caller *tenant.Principal
	o      *Options
	find   func(id string) ([]model.Item, error)

	q       *run.Request
	set     *Settings
	in      Request
	settled []string   // ids of items that asked for approvals, whose calls were made
	allowed []run.Tool // that the choice leaves the model
}

// Plan starts the plan of a response.
func (s *Service) Plan(ctx context.Context, caller *tenant.Principal, o *Options) *Plan {
	q := &run.Request{Parallel: isOrNil(o.Parallel), Temperature: o.Temperature, TopP: o.TopP, Truncate: is(o.Truncate)}
	set := &Settings{Background: is(o.Background), Store: isOrNil(o.Store), Metadata: o.Metadata}
	return &Plan{s: s, ctx: ctx, caller: caller, o: o, find: s.Items(ctx, caller.Tenant.ID), q: q, set: set, in: Request{Request: q, Settings: set}}
}

func is(b *bool) bool      { return b != nil && *b }
func isOrNil(b *bool) bool { return b == nil || *b }

// Models sets the models that are asked; the next one is asked if one fails. all takes precedence over one.
func (p *Plan) Models(one *string, all []string) error {
	switch {
	case len(all) > maxModels:
		return invalid("models must have at most %d names", maxModels)
	case len(all) > 0:
		p.q.Models = all
	case one != nil && *one != "":
		p.q.Models = []string{*one}
	default:
		return invalid("model is required: GET /v1/models lists what there is")
	}
	p.set.Model = p.q.Models[0]
	for i, name := range p.q.Models {
		if slices.Contains(p.q.Models[:i], name) {
			return invalid("models names %q twice", name)
		}
	}
	return nil
}

// EndInput checks the input as a whole.
func (p *Plan) EndInput() error {
	p.settle()
	p.set.InputItems = len(p.q.Input)
	if p.o.Instructions != nil {
		p.q.Instructions = *p.o.Instructions
	}
	if p.o.Previous != nil {
		p.set.PreviousResponseID = *p.o.Previous
	}
	if p.set.InputItems == 0 && p.set.PreviousResponseID == "" {
		return invalid("input has nothing for the model")
	}
	return nil
}

// Format is the form of an answer: JSON by a schema.
type Format struct {
	Name, Description *string
	Schema            jsontext.Value
	Strict            *bool
}

// Format sets the form of the answer at a path of the request; nil for text.
func (p *Plan) Format(path string, f *Format) error {
	p.set.Format = jsontext.Value(`{"type":"text"}`)
	if f == nil {
		return nil
	}
	if f.Schema.Kind() != '{' || len(f.Schema) > maxSchema {
		return invalid("%s.schema must be a JSON Schema of at most %d bytes", path, maxSchema)
	}
	name := "answer"
	if f.Name != nil {
		name = *f.Name
	}
	if !toolName.MatchString(name) {
		return invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
	}
	p.q.Format = &model.Format{Name: name, Schema: f.Schema, Strict: is(f.Strict)}
	if f.Description != nil {
		p.q.Format.Description = *f.Description
	}
	var err error
	p.set.Format, err = json.Marshal(map[string]any{"type": "json_schema", "name": name, "description": f.Description, "schema": f.Schema, "strict": p.q.Format.Strict}, json.Deterministic(true))
	return err
}

// End checks the options, and returns the request to create.
func (p *Plan) End() (*Request, error) {
	for _, step := range []func() error{p.limit, p.think, p.compact, p.include, p.describe} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &p.in, nil
}

func (p *Plan) limit() error {
	within := func(name string, v *int64, least int64, set *int) error {
		if v == nil {
			return nil
		}
		if *v < least || *v > 1_000_000 {
			return invalid("%s must be between %d and 1000000", name, least)
		}
		*set = int(*v)
		return nil
	}
	o, q := p.o, p.q
	q.Limits.Steps, q.Limits.Duration = agent.DefaultSteps, maxDuration
	if err := within("max_steps", o.MaxSteps, 1, &q.Limits.Steps); err != nil {
		return err
	}
	if err := within("max_tool_calls", o.MaxToolCalls, 1, &q.Limits.Calls); err != nil {
		return err
	}
	if o.MaxTotalTokens != nil {
		if *o.MaxTotalTokens < 1 || *o.MaxTotalTokens > maxTotalTokens {
			return invalid("max_total_tokens must be between 1 and %d", int64(maxTotalTokens))
		}
		q.Limits.Tokens = *o.MaxTotalTokens
	}
	if o.MaxCost != nil {
		if !(*o.MaxCost >= minCost && *o.MaxCost <= maxCost) {
			return invalid("max_cost must be between 0.000001 and %d US dollars", int64(maxCost))
		}
		q.Limits.Cost = usage.MoneyOf(*o.MaxCost)
	}
	var tokens int
	if err := within("max_output_tokens", o.MaxOutputTokens, minOutputTokens, &tokens); err != nil {
		return err
	}
	q.Limits.OutputTokens = int64(tokens)
	for _, n := range []struct {
		name string
		v    *float64
		most float64
	}{{"temperature", o.Temperature, 2}, {"top_p", o.TopP, 1}} {
		if n.v != nil && (*n.v < 0 || *n.v > n.most) {
			return invalid("%s must be between 0 and %g", n.name, n.most)
		}
	}
	return nil
}

func (p *Plan) think() error {
	if e := p.o.Effort; e != nil {
		p.set.Effort, p.q.Reasoning.Effort = *e, model.Effort(*e)
	}
	if s := p.o.Summary; s != nil {
		p.set.Summary, p.q.Reasoning.Summary = *s, true
	}
	return nil
}

func (p *Plan) compact() error {
	for i, at := range p.o.Compact {
		p.q.Compact = &run.Compact{}
		if at == nil {
			continue
		}
		if p.q.Compact.At = *at; *at < 1000 {
			return invalid("context_management[%d].compact_threshold must be at least 1000", i)
		}
	}
	return nil
}

func (p *Plan) include() error {
	for _, what := range p.o.Include {
		switch what {
		case includeReasoning:
			p.set.Encrypted = true
		case IncludeOutputs:
			p.set.Outputs = true
		case IncludeSources:
		default:
			return invalid("include has %q; there are %s, %s and %s", what, includeReasoning, IncludeOutputs, IncludeSources)
		}
	}
	return nil
}

// describe checks what only describes the response.
func (p *Plan) describe() error {
	o := p.o
	size := 0
	for key, value := range o.ClientMetadata {
		size += len(key) + len(value)
	}
	if n := len(o.ClientMetadata); n > maxClientPairs || size > maxClientBytes {
		return invalid("client_metadata must have at most %d pairs and %d bytes; it has %d and %d", maxClientPairs, maxClientBytes, n, size)
	}
	if len(o.Metadata) > maxMetadata {
		return invalid("metadata must have at most %d pairs", maxMetadata)
	}
	for key, value := range o.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataText {
			return invalid("metadata must have keys of 1 to %d and values of at most %d characters", maxMetadataKey, maxMetadataText)
		}
	}
	if o.CacheKey != nil {
		if len(*o.CacheKey) > maxCacheKey {
			return invalid("prompt_cache_key must have at most %d characters", maxCacheKey)
		}
		p.q.CacheKey = *o.CacheKey
	}
	if o.SafetyIdentifier != nil {
		p.set.SafetyIdentifier = *o.SafetyIdentifier
	}
	if is(o.Obfuscation) {
		return invalid("stream_options.include_obfuscation must be false: streams have no obfuscation")
	}
	if p.set.Background && !p.set.Store {
		return invalid("a background response must be stored: leave out store, or background")
	}
	if strings.Contains(p.q.CacheKey, "\x00") {
		return invalid("prompt_cache_key must not contain a NUL character")
	}
	return nil
}

// Sealer encrypts what clients carry for the server.
type Sealer interface {
	Seal(plain []byte, place string) []byte
	Open(sealed []byte, place string) ([]byte, error)
}

func statePlace(t tenant.ID) string { return "responses/state/" + t }

// SealState returns a model's state as clients carry it. It says which provider made it, so they cannot
// read it.
func (s *Service) SealState(t tenant.ID, state model.State) (string, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.Seal.Seal(text, statePlace(t))), nil
}

func (s *Service) openState(t tenant.ID, text string) (state model.State, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return state, err
	}
	plain, err := s.Seal.Open(sealed, statePlace(t))
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(plain, &state)
}

var (
	toolName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	itemID      = toolName
	serverLabel = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)
)

// hasServer reports whether the request has an MCP server with a label.
func (p *Plan) hasServer(label string) bool {
	return slices.ContainsFunc(p.in.Servers, func(s mcptool.Server) bool { return s.Label == label })
}
