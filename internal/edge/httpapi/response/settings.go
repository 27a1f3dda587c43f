package response

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
)

// Bounds of a request.
const (
	maxModels       = 5
	maxTools        = 128
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

// parse reads a request.
func (p *parser) parse(in *CreateResponse) (*response.Request, error) {
	q := &run.Request{Parallel: orTrue(in.ParallelToolCalls), Temperature: in.Temperature, TopP: in.TopP, Truncate: in.Truncation != nil && *in.Truncation == "auto"}
	s := &response.Settings{Background: in.Background != nil && *in.Background, Store: orTrue(in.Store), Metadata: in.Metadata}
	for _, step := range []func(*CreateResponse, *run.Request, *response.Settings) error{
		parseModels, p.parseInput, p.parseTools, p.parseChoice, parseFormat, parseLimits, parseReasoning, parseRest,
	} {
		if err := step(in, q, s); err != nil {
			return nil, err
		}
	}
	return &response.Request{Request: q, Settings: s, Servers: p.servers, Known: p.lists, Asked: p.asked, Approvals: p.approvals}, nil
}

func orTrue(b *bool) bool { return b == nil || *b }

func parseModels(in *CreateResponse, q *run.Request, s *response.Settings) error {
	switch {
	case len(in.Models) > maxModels:
		return invalid("models must have at most %d names", maxModels)
	case len(in.Models) > 0:
		q.Models = in.Models
	case in.Model != nil && *in.Model != "":
		q.Models = []string{*in.Model}
	default:
		return invalid("model is required: GET /v1/models lists what there is")
	}
	s.Model = q.Models[0]
	for i, name := range q.Models {
		if slices.Contains(q.Models[:i], name) {
			return invalid("models names %q twice", name)
		}
	}
	return nil
}

func (p *parser) parseInput(in *CreateResponse, q *run.Request, s *response.Settings) (err error) {
	q.Input, err = p.input(in.Input)
	s.InputItems = len(q.Input)
	if in.Instructions != nil {
		q.Instructions = *in.Instructions
	}
	if in.PreviousResponseID != nil {
		s.PreviousResponseID = *in.PreviousResponseID
	}
	if err == nil && s.InputItems == 0 && s.PreviousResponseID == "" {
		return invalid("input has nothing for the model")
	}
	return err
}

// Function is a tool of the client's.
type Function struct {
	Type        *string        `json:"type" required:"true"`
	Name        *string        `json:"name" required:"true"`
	Description *string        `json:"description,omitzero"`
	Parameters  jsontext.Value `json:"parameters,omitzero"`
	Strict      *bool          `json:"strict,omitzero"`
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (p *parser) parseTools(in *CreateResponse, q *run.Request, s *response.Settings) error {
	if len(in.Tools) > maxTools {
		return invalid("tools must have at most %d", maxTools)
	}
	for i, text := range in.Tools {
		kind, _ := kindOf(text)
		path := fmt.Sprintf("tools[%d]", i)
		switch kind {
		case "sandbox":
			if err := parseSandbox(path, text, q, s); err != nil {
				return err
			}
		case "code_interpreter":
			if err := p.parseInterpreter(path, text, q, s); err != nil {
				return err
			}
		case "function":
			t, shown, err := parseFunction(path, text)
			if err != nil {
				return err
			}
			q.Tools = append(q.Tools, *t)
			s.Tools = append(s.Tools, shown)
		case customTool:
			t, shown, err := parseCustom(path, text)
			if err != nil {
				return err
			}
			q.Tools = append(q.Tools, *t)
			s.Tools = append(s.Tools, shown)
		case "mcp":
			shown, err := p.parseMCP(path, text)
			if err != nil {
				return err
			}
			s.Tools = append(s.Tools, shown)
		default:
			if !isWebTool(kind) {
				return invalid("%s.type %q is not a tool of this server; use sandbox, code_interpreter, function, custom, mcp, web_search, fetch_url or people_search", path, kind)
			}
			t, err := p.parseWeb(path, kind, text, in.Include)
			if err != nil {
				return err
			}
			q.Tools = append(q.Tools, t)
			s.Tools = append(s.Tools, text)
		}
	}
	return q.CheckTools()
}

// parseSandbox adds the tools of the sandbox, once.
func parseSandbox(path string, text jsontext.Value, q *run.Request, s *response.Settings) error {
	var only struct {
		Type *string `json:"type" required:"true"`
	}
	if err := decode(path, text, &only); err != nil {
		return err
	}
	if !slices.ContainsFunc(q.Tools, func(t run.Tool) bool { return t.Handler == sandboxtool.Handler }) {
		q.Tools = append(q.Tools, sandboxtool.Tools()...)
	}
	q.PlaceFiles = true
	s.Tools = append(s.Tools, jsontext.Value(`{"type":"sandbox"}`))
	return nil
}

func parseFunction(path string, text jsontext.Value) (*run.Tool, jsontext.Value, error) {
	var in Function
	if err := decode(path, text, &in); err != nil {
		return nil, nil, err
	}
	if !toolName.MatchString(*in.Name) {
		return nil, nil, invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
	}
	t := &run.Tool{Tool: model.Tool{Name: *in.Name, Strict: in.Strict != nil && *in.Strict}}
	if in.Description != nil {
		t.Description = *in.Description
	}
	shown := map[string]any{"type": "function", "name": t.Name, "description": in.Description, "parameters": nil, "strict": in.Strict}
	if len(in.Parameters) > 0 && in.Parameters.Kind() != 'n' {
		if in.Parameters.Kind() != '{' || len(in.Parameters) > maxSchema {
			return nil, nil, invalid("%s.parameters must be a JSON Schema of at most %d bytes", path, maxSchema)
		}
		t.Parameters, shown["parameters"] = in.Parameters, in.Parameters
	}
	out, err := json.Marshal(shown, json.Deterministic(true))
	return t, out, err
}

// Choice is a tool_choice that is an object.
type Choice struct {
	Type  *string          `json:"type" required:"true"`
	Name  *string          `json:"name,omitzero"`
	Mode  *string          `json:"mode,omitzero" enum:"auto,required,none"`
	Tools []jsontext.Value `json:"tools,omitzero"`
	// Of mcp.
	ServerLabel *string `json:"server_label,omitzero"`
}

func (p *parser) parseChoice(in *CreateResponse, q *run.Request, s *response.Settings) error {
	s.ToolChoice = in.ToolChoice
	switch in.ToolChoice.Kind() {
	case 'n', 0:
		s.ToolChoice = jsontext.Value(`"auto"`)
		return nil
	case '"':
		var mode string
		if err := json.Unmarshal(in.ToolChoice, &mode); err != nil || !slices.Contains([]string{"auto", "none", "required"}, mode) {
			return invalid("tool_choice must be auto, none, required, or an object that names a function")
		}
		q.Choice.Mode = model.ToolMode(mode)
	case '{':
		var c Choice
		if err := decode("tool_choice", in.ToolChoice, &c); err != nil {
			return err
		}
		if *c.Type == "allowed_tools" {
			return parseAllowed(&c, q)
		}
		if err := c.parse(q); err != nil {
			return err
		}
	default:
		return invalid("tool_choice must be auto, none, required, or an object that names a function")
	}
	if q.Choice.Mode == model.ToolRequired && len(q.Tools)+len(p.servers) == 0 {
		return invalid("tool_choice is required, and there are no tools")
	}
	return nil
}

// parse reads a choice that names a tool. Those of MCP servers are not known yet.
func (c *Choice) parse(q *run.Request) error {
	q.Choice.Mode = model.ToolNamed
	switch kind := *c.Type; {
	case kind == "mcp" && c.ServerLabel != nil && c.Name != nil:
		q.Choice.Name = mcptool.Name(*c.ServerLabel, *c.Name)
		return nil
	case (kind == "function" || kind == customTool) && c.Name != nil:
		q.Choice.Name = *c.Name
	case slices.Contains(openAISearches, kind):
		q.Choice.Name = web.SearchName
	case isWebTool(kind), kind == interpreter.Name:
		q.Choice.Name = kind
	default:
		return invalid(`tool_choice must be auto, none, required, {"type": "function", "name": …}, {"type": "custom", "name": …}, {"type": "mcp", "server_label": …, "name": …}, or {"type": …} of code_interpreter or a web tool`)
	}
	return q.CheckChoice()
}

// parseAllowed leaves a model those of the tools that a choice allows.
func parseAllowed(c *Choice, q *run.Request) error {
	if c.Mode == nil || len(c.Tools) == 0 {
		return invalid("tool_choice of type allowed_tools must have a mode and tools")
	}
	var allowed []run.Tool
	for i, text := range c.Tools {
		var only struct {
			Type *string `json:"type" required:"true"`
			Name *string `json:"name,omitzero"`
		}
		path := fmt.Sprintf("tool_choice.tools[%d]", i)
		if err := decode(path, text, &only); err != nil {
			return err
		}
		before := len(allowed)
		for _, t := range q.Tools {
			if *only.Type == clientType(&t) && t.Handler == "" && only.Name != nil && t.Name == *only.Name || t.Handler != "" && (t.Handler == *only.Type || t.Name == *only.Type) {
				allowed = append(allowed, t)
			}
		}
		if len(allowed) == before {
			return invalid("%s names none of the request's tools", path)
		}
	}
	q.Tools, q.Choice.Mode = allowed, model.ToolMode(*c.Mode)
	return nil
}

func parseFormat(in *CreateResponse, q *run.Request, s *response.Settings) error {
	s.Format = jsontext.Value(`{"type":"text"}`)
	f, path := (*TextFormat)(nil), "text.format"
	if in.Text != nil {
		f = in.Text.Format
	}
	if r := in.ResponseFormat; r != nil {
		if f != nil {
			return invalid("response_format and text.format are the same; give one of them")
		}
		path = "response_format.json_schema"
		f = &TextFormat{Type: r.Type}
		if j := r.JSONSchema; j != nil {
			f.Name, f.Description, f.Schema, f.Strict = j.Name, j.Description, j.Schema, j.Strict
		}
	}
	if f == nil || *f.Type == "text" {
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
	q.Format = &model.Format{Name: name, Schema: f.Schema, Strict: f.Strict != nil && *f.Strict}
	if f.Description != nil {
		q.Format.Description = *f.Description
	}
	var err error
	s.Format, err = json.Marshal(map[string]any{"type": "json_schema", "name": name, "description": f.Description, "schema": f.Schema, "strict": q.Format.Strict}, json.Deterministic(true))
	return err
}

func parseLimits(in *CreateResponse, q *run.Request, _ *response.Settings) error {
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
	q.Limits.Steps, q.Limits.Duration = agent.DefaultSteps, maxDuration
	if err := within("max_steps", in.MaxSteps, 1, &q.Limits.Steps); err != nil {
		return err
	}
	if err := within("max_tool_calls", in.MaxToolCalls, 1, &q.Limits.Calls); err != nil {
		return err
	}
	if in.MaxTotalTokens != nil {
		if *in.MaxTotalTokens < 1 || *in.MaxTotalTokens > maxTotalTokens {
			return invalid("max_total_tokens must be between 1 and %d", int64(maxTotalTokens))
		}
		q.Limits.Tokens = *in.MaxTotalTokens
	}
	if in.MaxCost != nil {
		if !(*in.MaxCost >= minCost && *in.MaxCost <= maxCost) {
			return invalid("max_cost must be between 0.000001 and %d US dollars", int64(maxCost))
		}
		q.Limits.Cost = usage.MoneyOf(*in.MaxCost)
	}
	var tokens int
	if err := within("max_output_tokens", in.MaxOutputTokens, minOutputTokens, &tokens); err != nil {
		return err
	}
	q.Limits.OutputTokens = int64(tokens)
	for _, n := range []struct {
		name string
		v    *float64
		most float64
	}{{"temperature", in.Temperature, 2}, {"top_p", in.TopP, 1}} {
		if n.v != nil && (*n.v < 0 || *n.v > n.most) {
			return invalid("%s must be between 0 and %g", n.name, n.most)
		}
	}
	return nil
}

func parseReasoning(in *CreateResponse, q *run.Request, s *response.Settings) error {
	if in.Reasoning == nil {
		return nil
	}
	if in.Reasoning.Effort != nil {
		s.Effort = *in.Reasoning.Effort
		q.Reasoning.Effort = model.Effort(s.Effort)
	}
	if in.Reasoning.Summary != nil {
		s.Summary = *in.Reasoning.Summary
		q.Reasoning.Summary = true
	}
	return nil
}

// checkClientMetadata limits the size of a client's metadata.
func checkClientMetadata(given map[string]string) error {
	size := 0
	for key, value := range given {
		size += len(key) + len(value)
	}
	if len(given) > maxClientPairs || size > maxClientBytes {
		return invalid("client_metadata must have at most %d pairs and %d bytes; it has %d and %d", maxClientPairs, maxClientBytes, len(given), size)
	}
	return nil
}

func parseRest(in *CreateResponse, q *run.Request, s *response.Settings) error {
	for i, m := range in.ContextManagement {
		q.Compact = &run.Compact{}
		if m.CompactThreshold == nil {
			continue
		}
		if q.Compact.At = *m.CompactThreshold; q.Compact.At < 1000 {
			return invalid("context_management[%d].compact_threshold must be at least 1000", i)
		}
	}
	for _, what := range in.Include {
		switch what {
		case "reasoning.encrypted_content":
			s.Encrypted = true
		case includeOutputs:
			s.Outputs = true
		case withSources: // they are always there
		default:
			return invalid("include has %q; there are reasoning.encrypted_content, %s and %s", what, includeOutputs, withSources)
		}
	}
	if err := checkClientMetadata(in.ClientMetadata); err != nil {
		return err
	}
	if len(in.Metadata) > maxMetadata {
		return invalid("metadata must have at most %d pairs", maxMetadata)
	}
	for key, value := range in.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataText {
			return invalid("metadata must have keys of 1 to %d and values of at most %d characters", maxMetadataKey, maxMetadataText)
		}
	}
	if in.PromptCacheKey != nil {
		if len(*in.PromptCacheKey) > maxCacheKey {
			return invalid("prompt_cache_key must have at most %d characters", maxCacheKey)
		}
		q.CacheKey = *in.PromptCacheKey
	}
	if in.SafetyIdentifier != nil {
		s.SafetyIdentifier = *in.SafetyIdentifier
	}
	if o := in.StreamOptions; o != nil && o.IncludeObfuscation != nil && *o.IncludeObfuscation {
		return invalid("stream_options.include_obfuscation must be false: streams have no obfuscation")
	}
	if s.Background && !s.Store {
		return invalid("a background response must be stored: leave out store, or background")
	}
	if strings.Contains(q.CacheKey, "\x00") {
		return invalid("prompt_cache_key must not contain a NUL character")
	}
	return nil
}
