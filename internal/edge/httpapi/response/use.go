package response

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/core/run"
)

// uses show the calls of tools that the server runs, by the names of the tools.
var uses = map[string]func(*ResponseItem, *run.ToolUse) error{
	interpreter.Name: showInterpreter,
}

// use shows a call of a tool that the server runs.
func (v *renderer) use(out *ResponseItem, u *run.ToolUse) error {
	show, ok := uses[u.Tool]
	if !ok {
		return fmt.Errorf("an item has the tool %q, which has no form here", u.Tool)
	}
	out.CallID = u.CallID
	return show(out, u)
}
