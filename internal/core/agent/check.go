package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/model"
)

// Limits of a definition.
const (
	MaxName        = 256     // characters
	MaxDescription = 2048    // characters
	MaxSystem      = 100_000 // characters
	MaxTools       = 128
	MaxServers     = 20
	MaxMetadata    = 64       // pairs
	MaxMetadataLen = 64 << 10 // bytes of all metadata, as JSON
	MaxSchema      = 256 << 10
	MaxStop        = 16
	MaxNames       = 128 // per policy list or allowed_tools
	MaxHeaders     = 32
	MaxDefinition  = 1 << 20 // bytes of the whole definition, as JSON
	MinCompaction  = 1000    // tokens
	MaxSteps       = 10_000
	DefaultSteps   = 100
	MaxRetryFor    = 3_600_000 // milliseconds
)

var (
	slugPattern   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	toolPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	serverPattern = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]{0,63}$`)
	headerPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,128}$`)
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// Check validates the agent. Errors name the path of the invalid field.
func (a *Agent) Check() error {
	switch {
	case a.Slug != "" && !slugPattern.MatchString(a.Slug):
		return invalid("slug must have 1 to 64 lowercase letters, digits and hyphens, and begin and end with a letter or digit")
	case a.Visibility != Private && a.Visibility != Template:
		return invalid("visibility must be private or template")
	}
	if a.Definition.Hands().Mode == Swarm {
		if i := slices.IndexFunc(a.Definition.Handoffs, func(h Handoff) bool { return h.Agent == a.ID }); i >= 0 {
			return invalid("handoffs[%d].agent_id: an agent is always in its own swarm; remove this entry", i)
		}
	}
	return a.Definition.check()
}

func (d *Definition) check() error {
	texts := []struct {
		path, text string
		most       int
	}{{"name", d.Name, MaxName}, {"description", d.Description, MaxDescription}, {"system", d.System, MaxSystem}}
	for _, t := range texts {
		if utf8.RuneCountInString(t.text) > t.most || strings.ContainsRune(t.text, 0) {
			return invalid("%s must have at most %d characters, and no NUL", t.path, t.most)
		}
	}
	if strings.TrimSpace(d.Name) == "" {
		return invalid("name must not be empty")
	}
	for _, step := range []func() error{d.Model.check, d.checkServers, d.checkTools, d.checkSkills, d.checkHandoffs, d.Policy.check, d.checkMetadata} {
		if err := step(); err != nil {
			return err
		}
	}
	switch {
	case d.Compaction != nil && (d.Compaction.At < 0 || d.Compaction.At > 0 && (d.Compaction.At < MinCompaction || d.Compaction.Off)):
		return invalid("compaction.at_tokens must be at least %d, and requires the mode auto", MinCompaction)
	case d.MaxSteps < 0 || d.MaxSteps > MaxSteps:
		return invalid("max_steps must be between 1 and %d", MaxSteps)
	case d.RetryFor != nil && (*d.RetryFor < 0 || *d.RetryFor > MaxRetryFor):
		return invalid("retry_for_ms must be between 0 and %d", MaxRetryFor)
	}
	if all, err := json.Marshal(d); err != nil || len(all) > MaxDefinition {
		return invalid("the agent must be at most %d bytes of JSON", MaxDefinition)
	}
	return nil
}

// CheckModel rejects settings that the model m does not support.
func (d *Definition) CheckModel(m *model.Record) error {
	switch s := &d.Model; {
	case m.MaxOutput > 0 && s.MaxTokens > int64(m.MaxOutput):
		return invalid("model.max_tokens must be at most %d, the output limit of the model %s", m.MaxOutput, m.Name)
	case s.Temperature != nil && m.MaxTemperature() > 0 && *s.Temperature > m.MaxTemperature():
		return invalid("model.temperature must be at most %g, the limit of the provider of the model %s", m.MaxTemperature(), m.Name)
	case s.Effort != "" && s.Effort != string(model.EffortNone) && !m.Can(model.CanReason):
		return invalid("model.effort must be omitted: the model %s does not support reasoning", m.Name)
	case len(d.Tools) > 0 && !m.Can(model.Tools):
		return invalid("tools must be empty: the model %s does not support tools", m.Name)
	case len(d.Handoffs) > 0 && !m.Can(model.Tools):
		return invalid("handoffs must be empty: each is a tool, and the model %s does not support tools", m.Name)
	case d.callTools() && !m.Can(model.Tools):
		return invalid("skills must be empty: they add tools, and the model %s does not support tools", m.Name)
	}
	return nil
}

func (m *Model) check() error {
	switch {
	case model.CheckName(m.Name) != nil:
		return invalid("model.name must be the name of a model; GET /v1/models lists the models")
	case m.MaxTokens < 0 || m.MaxTokens > 1_000_000:
		return invalid("model.max_tokens must be between 1 and 1000000")
	case m.Temperature != nil && !(*m.Temperature >= 0 && *m.Temperature <= 2):
		return invalid("model.temperature must be between 0 and 2")
	case m.TopP != nil && !(*m.TopP >= 0 && *m.TopP <= 1):
		return invalid("model.top_p must be between 0 and 1")
	case len(m.Stop) > MaxStop:
		return invalid("model.stop must have at most %d texts", MaxStop)
	case m.Effort != "" && !slices.Contains(model.Efforts, model.Effort(m.Effort)):
		return invalid("model.effort must be none, minimal, low, medium, high or xhigh")
	}
	for i, s := range m.Stop {
		if s == "" || len(s) > 256 {
			return invalid("model.stop[%d] must have 1 to 256 bytes", i)
		}
	}
	return nil
}

func (d *Definition) checkServers() error {
	if len(d.Servers) > MaxServers {
		return invalid("mcp_servers must have at most %d entries", MaxServers)
	}
	for i := range d.Servers {
		s, path := &d.Servers[i], fmt.Sprintf("mcp_servers[%d]", i)
		if err := s.checkCommand(path); err != nil {
			return err
		}
		u, err := url.Parse(s.URL)
		switch {
		case !serverPattern.MatchString(s.Name):
			return invalid("%s.name must have 1 to 64 letters, digits, _ and -, and begin with a letter", path)
		case d.Server(s.Name) != s:
			return invalid("%s.name: duplicate %q", path, s.Name)
		case s.Command != "":
		case len(s.URL) > 2048 || err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "":
			return invalid("%s.url must be an http or https URL without user and fragment", path)
		case utf8.RuneCountInString(s.Description) > 500:
			return invalid("%s.description must have at most 500 characters", path)
		case len(s.Headers) > MaxHeaders:
			return invalid("%s.headers must have at most %d entries", path, MaxHeaders)
		}
		seen := map[string]bool{}
		for name, value := range s.Headers {
			canonical := http.CanonicalHeaderKey(name)
			if !headerPattern.MatchString(name) || len(value) > 8192 || strings.ContainsAny(value, "\r\n\x00") || seen[canonical] {
				return invalid("%s.headers must be names of letters, digits and -, each once, with values of one line and at most 8192 bytes", path)
			}
			seen[canonical] = true
		}
		if err := checkNames(path+".allowed_tools", s.AllowedTools); err != nil {
			return err
		}
	}
	return nil
}

func (d *Definition) checkTools() error {
	if len(d.Tools) > MaxTools {
		return invalid("tools must have at most %d entries", MaxTools)
	}
	seen := map[string]bool{}
	for i := range d.Tools {
		t, path := &d.Tools[i], fmt.Sprintf("tools[%d]", i)
		if err := t.Check(path); err != nil {
			return err
		}
		key := strings.Join([]string{string(t.Type), t.Server, t.Name}, " ")
		if seen[key] {
			return invalid("%s: duplicate", path)
		}
		seen[key] = true
	}
	if at := slices.IndexFunc(d.Tools, func(t Tool) bool { return d.Kind(&t) == Sandboxes }); at >= 0 && slices.ContainsFunc(d.Tools, func(t Tool) bool { return d.Kind(&t) == Sandbox }) {
		return invalid("tools[%d]: sandbox and sandboxes have tools with the same names; use only one of them", at)
	}
	return nil
}

// Kind returns the type of a tool. It resolves an MCP tool that names a built-in server to the
// built-in type.
func (d *Definition) Kind(t *Tool) ToolType {
	if t.Type == MCP && d.Server(t.Server) == nil {
		if kind, ours := BuiltIn[t.Server]; ours {
			return kind
		}
	}
	return t.Type
}

// Pooled reports whether an agent works in the named sandboxes of its sessions.
func (d *Definition) Pooled() bool {
	return slices.ContainsFunc(d.Tools, func(t Tool) bool { return d.Kind(&t) == Sandboxes })
}

// Check validates the tool. Errors name the invalid field, prefixed with path.
func (t *Tool) Check(path string) error {
	switch t.Type {
	case MCP:
		if !serverPattern.MatchString(t.Server) {
			return invalid("%s.server must be the name of a server", path)
		}
	case Custom:
		switch {
		case !toolPattern.MatchString(t.Name):
			return invalid("%s.name must have 1 to 64 letters, digits, _ and -", path)
		case utf8.RuneCountInString(t.Description) > 4096:
			return invalid("%s.description must have at most 4096 characters", path)
		case len(t.Schema) > MaxSchema || len(t.Schema) > 0 && !object(t.Schema):
			return invalid("%s.input_schema must be a JSON Schema of at most %d bytes", path, MaxSchema)
		}
	case Sandbox, Sandboxes, WebSearch, FetchURL:
	default:
		return invalid("%s.type must be mcp, custom, sandbox, sandboxes, web_search or fetch_url", path)
	}
	if t.Type != MCP && t.Server != "" {
		return invalid("%s.server applies only to tools of type mcp", path)
	}
	if t.Type != Custom && (t.Name != "" || t.Description != "" || len(t.Schema) > 0) {
		return invalid("%s: name, description and input_schema apply only to tools of type custom", path)
	}
	return nil
}

func (p *Policy) check() error {
	for _, l := range []struct {
		name  string
		names []string
	}{{"allow_list", p.Allow}, {"deny_list", p.Deny}, {"require_confirmation", p.Confirm}} {
		if err := checkNames("tool_policy."+l.name, l.names); err != nil {
			return err
		}
	}
	if p.Within < 0 || p.Within > 365*86400 {
		return invalid("tool_policy.confirm_within must be between 1 and %d seconds", 365*86400)
	}
	return nil
}

func checkNames(path string, names []string) error {
	if len(names) > MaxNames {
		return invalid("%s must have at most %d names", path, MaxNames)
	}
	for i, name := range names {
		if name == "" || len(name) > 128 || strings.ContainsRune(name, 0) {
			return invalid("%s[%d] must have 1 to 128 bytes", path, i)
		}
	}
	return nil
}

func (d *Definition) checkMetadata() error {
	if len(d.Metadata) > MaxMetadata {
		return invalid("metadata must have at most %d pairs", MaxMetadata)
	}
	size := 0
	for key, value := range d.Metadata {
		if n := utf8.RuneCountInString(key); n < 1 || n > 64 {
			return invalid("metadata must have keys of 1 to 64 characters")
		}
		size += len(key) + len(value)
	}
	if size > MaxMetadataLen {
		return invalid("metadata must be at most %d bytes", MaxMetadataLen)
	}
	return nil
}

func object(text json.RawMessage) bool {
	return json.Valid(text) && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{"))
}

// Warning reports a setting that Atoll stores but that has no effect.
type Warning struct{ Path, Message string }

// BuiltIn maps server names to built-in tools. An MCP tool with one of these names uses the
// built-in tool unless the agent defines a server of that name.
var BuiltIn = map[string]ToolType{"web-search": WebSearch, "web_search": WebSearch, "fetch-url": FetchURL, "fetch_url": FetchURL, "sandbox": Sandbox, "sandboxes": Sandboxes}

// Warnings reports tools whose server the agent does not define, and multiagent settings without
// handoffs.
func (d *Definition) Warnings() (out []Warning) {
	if d.Multiagent != nil && len(d.Handoffs) == 0 {
		out = append(out, Warning{"multiagent", "handoffs is empty: there is no agent to hand on to"})
	}
	for i, t := range d.Tools {
		if t.Type != MCP || d.Server(t.Server) != nil {
			continue
		}
		if _, ours := BuiltIn[t.Server]; !ours {
			out = append(out, Warning{fmt.Sprintf("tools[%d].server", i), fmt.Sprintf("mcp_servers has no %q, and there is no built-in tool of that name: the agent goes without it", t.Server)})
		}
	}
	return out
}
