package anthropic

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/toolset"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

const (
	null           = "null"
	serviceAccount = "service_account" // the only execution identity there is
	standardSpeed  = "standard"
)

// only reads one field of a body into a struct that has it alone, so that messages name it.
func only(name string, text jsontext.Value, into any) error {
	return wire.Body.Decode(slices.Concat([]byte(`{"`+name+`":`), text, []byte("}")), into)
}

// change makes of a the version that in asks for.
func (in *AgentFields) change(a *agent.Agent) error {
	if err := in.refuse(); err != nil {
		return err
	}
	d := &a.Definition
	if in.Name != nil {
		d.Name = *in.Name
	}
	for _, f := range []struct {
		name string
		text jsontext.Value
		to   *string
	}{{"description", in.Description, &d.Description}, {"system", in.System, &d.System}} {
		if len(f.text) == 0 {
			continue
		}
		*f.to = "" // what null makes of it
		if err := json.Unmarshal(f.text, f.to); err != nil {
			return httpapi.Invalid("%s must be a string, or null", f.name)
		}
	}
	for _, step := range []func(*agent.Definition) error{in.setModel, in.setMetadata, in.setServers, in.setTools} {
		if err := step(d); err != nil {
			return err
		}
	}
	return nil
}

// refuse refuses what this version does not have.
func (in *AgentFields) refuse() error {
	if len(in.ExecutionIdentity) == 0 {
		return nil
	}
	var identity struct {
		Identity *TypedFields `json:"execution_identity"`
	}
	if err := only("execution_identity", in.ExecutionIdentity, &identity); err != nil {
		return err
	}
	if identity.Identity != nil && *identity.Identity.Type != serviceAccount {
		return httpapi.Invalid("execution_identity.type must be %s", serviceAccount)
	}
	return nil
}

// setModel changes which model is asked. What this form has no word for stays.
func (in *AgentFields) setModel(d *agent.Definition) error {
	if len(in.Model) == 0 {
		return nil
	}
	if in.Model.Kind() == '"' {
		return json.Unmarshal(in.Model, &d.Model.Name)
	}
	var of struct {
		Model *ModelFields `json:"model" required:"true"`
	}
	if err := only("model", in.Model, &of); err != nil {
		return err
	}
	m := of.Model
	switch {
	case m.Speed != nil && *m.Speed != standardSpeed:
		return httpapi.Invalid("model.speed must be %s, or omitted", standardSpeed)
	case m.InferenceGeo != nil:
		return httpapi.Invalid("model.inference_geo is not supported by this version: leave it out")
	}
	d.Model.Name = *m.ID
	if len(m.Effort) == 0 {
		return nil
	}
	effort := ""
	switch m.Effort.Kind() {
	case 'n':
	case '"':
		if err := json.Unmarshal(m.Effort, &effort); err != nil {
			return err
		}
	default:
		var of struct {
			Effort *TypedFields `json:"effort"`
		}
		if err := only("effort", m.Effort, &of); err != nil {
			return err
		}
		effort = *of.Effort.Type
	}
	if effort != "" && !slices.Contains(efforts, effort) {
		return httpapi.Invalid("model.effort must be one of %s", strings.Join(efforts, ", "))
	}
	d.Model.Effort = effort
	return nil
}

// efforts are those of this form that there are.
var efforts = []string{"low", "medium", "high", "xhigh"}

// setMetadata sets pairs, and removes those whose value is null. The others stay.
func (in *AgentFields) setMetadata(d *agent.Definition) error {
	if len(in.Metadata) == 0 || string(in.Metadata) == null {
		return nil
	}
	var of struct {
		Metadata map[string]*string `json:"metadata"`
	}
	if err := only("metadata", in.Metadata, &of); err != nil {
		return err
	}
	d.Metadata = maps.Clone(d.Metadata)
	for key, value := range of.Metadata {
		switch {
		case key == toolset.PolicyKey:
			return httpapi.Invalid("metadata.%s must be omitted: permissions are said by tools", toolset.PolicyKey)
		case value == nil:
			delete(d.Metadata, key)
			continue
		case d.Metadata == nil:
			d.Metadata = map[string]stdjson.RawMessage{}
		}
		text, err := stdjson.Marshal(*value)
		if err != nil {
			return err
		}
		d.Metadata[key] = text
	}
	if len(d.Metadata) == 0 {
		d.Metadata = nil
	}
	return nil
}

// setServers replaces the servers. One that is the same by name and URL keeps its headers, its
// description, and which of its tools are used.
func (in *AgentFields) setServers(d *agent.Definition) error {
	if len(in.MCPServers) == 0 {
		return nil
	}
	var of struct {
		Servers []ServerFields `json:"mcp_servers"`
	}
	if err := only("mcp_servers", in.MCPServers, &of); err != nil {
		return err
	}
	servers := make([]agent.Server, len(of.Servers))
	for i, s := range of.Servers {
		if *s.Type != "url" {
			return httpapi.Invalid("mcp_servers[%d].type must be url", i)
		}
		servers[i] = agent.Server{Name: *s.Name, URL: *s.URL}
	}
	toolset.SetServers(d, servers)
	return nil
}

// setTools replaces the tools, and the policy as far as this form speaks of it.
func (in *AgentFields) setTools(d *agent.Definition) error {
	if len(in.Tools) == 0 {
		return nil
	}
	var of struct {
		Tools []ToolFields `json:"tools"`
	}
	if err := only("tools", in.Tools, &of); err != nil {
		return err
	}
	toolset.Forget(d)
	kept := slices.DeleteFunc(slices.Clone(d.Tools), func(t agent.Tool) bool { return d.Kind(&t) != agent.Sandboxes }) // which this form does not know
	d.Tools, d.Servers = nil, slices.Clone(d.Servers)
	for i := range of.Tools {
		t, path := &of.Tools[i], fmt.Sprintf("tools[%d]", i)
		var err error
		switch *t.Type {
		case agentToolset:
			err = t.addAgentToolset(d, path, in.off)
		case mcpToolset:
			err = t.addMCPToolset(d, path)
		case customTool:
			err = t.addCustom(d, path)
		default:
			err = httpapi.Invalid("%s.type must be %s, %s or %s", path, agentToolset, mcpToolset, customTool)
		}
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(d.Tools, func(t agent.Tool) bool { return d.Kind(&t) == agent.Sandbox }) { // which has tools of the same names
		d.Tools = append(d.Tools, kept...)
	}
	return toolset.SyncMetadata(d)
}
