package skill

import (
	"encoding/json"
	"slices"
)

// Definition describes a built-in skill to the code that validates agents. Package
// internal/agent/skilltool implements these skills and registers them.
type Definition struct {
	Name  string
	Tools []string // names of the tools that the skill adds
	// Extras are the extras of the default image that the tools need.
	Extras []string
	Needs  Needs
	// Check validates a configuration; empty means the defaults. Errors begin with path.
	Check func(path string, config json.RawMessage) error
}

// Needs says which sandbox a skill needs.
type Needs int

// Sandboxes that skills need.
const (
	NoSandbox  Needs = iota
	AnySandbox       // the sandbox without a name, unless the agent has named sandboxes
	Unnamed          // the sandbox without a name
)

var builtIns []Definition

// Register adds built-in skills. It is for init functions: it must not run while other functions
// of the package do.
func Register(all ...Definition) { builtIns = append(builtIns, all...) }

// BuiltIn reports whether a built-in skill has the name.
func BuiltIn(name string) bool { return Find(name) != nil }

// Find returns the built-in skill with a name; nil for an unknown name.
func Find(name string) *Definition {
	i := slices.IndexFunc(builtIns, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &builtIns[i]
}

// CheckConfig validates the configuration of a built-in skill. Errors begin with path.
func CheckConfig(path, name string, config json.RawMessage) error {
	d := Find(name)
	if d == nil {
		return invalid("%s: skill %s not found", path, name)
	}
	return d.Check(path+".config", config)
}

// ReadTool is the name of the tool that reads a tenant's skills.
const ReadTool = "read_skill"
