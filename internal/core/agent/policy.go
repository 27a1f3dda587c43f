package agent

import "slices"

// Verdict is what a policy says of a tool.
type Verdict int

// Verdicts.
const (
	Denied Verdict = iota
	Asks           // a call waits until the client has approved it
	Allowed
)

// Judge says whether a tool may be called that goes by names: its own, and that of its kind
// or server. What is denied by one of them is denied.
func (p *Policy) Judge(names ...string) Verdict {
	in := func(list []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return name != "" && slices.Contains(list, name) })
	}
	switch {
	case in(p.Deny), p.Allow != nil && !in(p.Allow):
		return Denied
	case in(p.Confirm):
		return Asks
	}
	return Allowed
}

// Names are what a tool of ours of a kind goes by.
func (t ToolType) Names() []string {
	names := []string{string(t)}
	for name, kind := range BuiltIn {
		if kind == t && name != string(t) {
			names = append(names, name)
		}
	}
	return names
}
