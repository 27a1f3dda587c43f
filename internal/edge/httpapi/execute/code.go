package execute

import (
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Codes of what ended a program, as the contract's published client documents them.
const (
	codeTimedOut    = "timeout"
	codeOutOfMemory = "memory_limit_exceeded"
	codePermission  = "security_policy_violation"
)

// Ending is what ended a run when it was not the program itself.
type Ending struct {
	Error        *string `json:"error" doc:"Why Atoll stopped the run, such as a limit, as a sentence; null if Atoll did not stop it. A client whose X-Client-Id begins with baponi- gets timeout, memory_limit_exceeded or security_policy_violation if one of these applies."`
	ErrorMessage string  `json:"error_message,omitzero" doc:"The sentence, where error has the code. Not in the original contract."`
}

// endingOf renders how an execution that is over was ended.
func endingOf(e *execution.Execution, coded bool) Ending {
	if e.Error == "" {
		return Ending{}
	}
	if code := codeOf(e); coded && code != "" {
		return Ending{&code, e.Error}
	}
	return Ending{Error: &e.Error}
}

func codeOf(e *execution.Execution) string {
	switch {
	case e.Status == execution.Timeout:
		return codeTimedOut
	case e.Status == execution.OOM:
		return codeOutOfMemory
	case e.Status == execution.Blocked && !e.NotStarted:
		return codePermission
	}
	return ""
}

// clientID names the program that calls. The contract's published client sends it with
// every request, and takes error for a code.
const clientID = "X-Client-Id"

// takesCodes reports whether the caller takes error for a code.
func takesCodes(c *httpapi.Call) bool {
	return strings.HasPrefix(c.R.Header.Get(clientID), "baponi-")
}
