package response

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/agent/interpreter"
	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// uses show the calls of tools that the server runs, by the names of the tools.
var uses = map[string]func(*ResponseItem, *run.ToolUse) error{
	web.SearchName: showResults, web.PeopleName: showResults, web.FetchName: showPages, response.SearchCall: showSearchCall,
	interpreter.Name: showInterpreter,
}

// use shows a call of a tool that the server runs.
func (v *renderer) use(out *ResponseItem, u *run.ToolUse) error {
	if u.Server != "" {
		return showRemoteCall(out, u)
	}
	show, ok := uses[u.Tool]
	if !ok {
		return fmt.Errorf("an item has the tool %q, which has no form here", u.Tool)
	}
	out.CallID = u.CallID
	return show(out, u)
}
