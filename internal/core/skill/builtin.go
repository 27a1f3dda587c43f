package skill

import (
	"encoding/json"
	"slices"
)

// BuiltIn describes a skill of the server to the code that validates agents. Package
// internal/agent/skilltool implements these skills and registers them.
type BuiltIn struct {
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

var builtIns []BuiltIn

// Register adds built-in skills. It is for init functions: it must not run while other functions
// of the package do.
func Register(all ...BuiltIn) { builtIns = append(builtIns, all...) }

// FindBuiltIn returns the built-in skill with a name; nil for an unknown name.
func FindBuiltIn(name string) *BuiltIn {
	i := slices.IndexFunc(builtIns, func(b BuiltIn) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &builtIns[i]
}

// CheckConfig validates the configuration of a built-in skill. Errors begin with path.
func CheckConfig(path, name string, config json.RawMessage) error {
	b := FindBuiltIn(name)
	if b == nil {
		return invalid("%s: skill %s not found", path, name)
	}
	return b.Check(path+".config", config)
}

// ReadTool is the name of the tool that reads a tenant's skills.
const ReadTool = "read_skill"
