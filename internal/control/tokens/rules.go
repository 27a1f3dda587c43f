package tokens

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Rule says how a token may call an operation.
type Rule struct {
	Scope tenant.Scope // the operation's
	Reach Reach
	Uses  Use
}

// Reach says which tokens may call an operation, beside those that are bound to nothing.
type Reach uint8

// Reaches of operations.
const (
	ReachTenant  Reach = iota // none: it is about more than one session or sandbox
	ReachAll                  // all: it is about nothing of the tenant's
	ReachSession              // those of the path's session_id
	ReachSandbox              // those of the path's sandbox
)

// Use says what a call uses, and so which bounds hold it.
type Use uint8

// Uses of operations.
const (
	UsesNothing    Use = iota // it reads, or ends something
	UsesExecutions            // executions, which max_executions counts and max_cost does not
	UsesModels                // models and all that runs use, which max_cost counts; and their executions
	UsesMore                  // things that no bound counts
)

// rules are the operations that are open to tokens. All others are not.
var rules = map[string]Rule{
	"runProgram":       {tenant.ScopeExecute, ReachTenant, UsesExecutions},
	"cancelExecution":  {tenant.ScopeExecute, ReachTenant, UsesNothing},
	"getExecution":     {tenant.ScopeRead, ReachTenant, UsesNothing},
	"getOutput":        {tenant.ScopeRead, ReachTenant, UsesNothing},
	"getExecutionFile": {tenant.ScopeRead, ReachTenant, UsesNothing},

	"createResponse":     {tenant.ScopeExecute, ReachTenant, UsesModels},
	"cancelResponse":     {tenant.ScopeExecute, ReachTenant, UsesNothing},
	"getResponse":        {tenant.ScopeRead, ReachTenant, UsesNothing},
	"listResponseInputs": {tenant.ScopeRead, ReachTenant, UsesNothing},
	"listResponseFiles":  {tenant.ScopeRead, ReachTenant, UsesNothing},
	"getResponseFile":    {tenant.ScopeRead, ReachTenant, UsesNothing},
	"listModels":         {"", ReachAll, UsesNothing},
	"retrieveModel":      {"", ReachAll, UsesNothing},

	"search": {tenant.ScopeTools, ReachTenant, UsesMore},
	"fetch":  {tenant.ScopeTools, ReachTenant, UsesMore},

	"getSession":                {tenant.ScopeRead, ReachSession, UsesNothing},
	"getSessionContext":         {tenant.ScopeRead, ReachSession, UsesNothing},
	"listSessionEvents":         {tenant.ScopeRead, ReachSession, UsesNothing},
	"streamSessionEvents":       {tenant.ScopeRead, ReachSession, UsesNothing},
	"listSessionFiles":          {tenant.ScopeRead, ReachSession, UsesNothing},
	"getSessionFile":            {tenant.ScopeRead, ReachSession, UsesNothing},
	"listSessionThreads":        {tenant.ScopeRead, ReachSession, UsesNothing},
	"getSessionThread":          {tenant.ScopeRead, ReachSession, UsesNothing},
	"listSessionThreadEvents":   {tenant.ScopeRead, ReachSession, UsesNothing},
	"streamSessionThreadEvents": {tenant.ScopeRead, ReachSession, UsesNothing},
	"sendSessionEvent":          {tenant.ScopeExecute, ReachSession, UsesModels},
	"interruptSession":          {tenant.ScopeExecute, ReachSession, UsesNothing},

	"getApproval":    {tenant.ScopeRead, ReachTenant, UsesNothing},
	"decideApproval": {tenant.ScopeExecute, ReachTenant, UsesModels},

	"createSandbox":        {tenant.ScopeSandboxes, ReachTenant, UsesMore},
	"getSandbox":           {tenant.ScopeSandboxes, ReachSandbox, UsesNothing},
	"deleteSandbox":        {tenant.ScopeSandboxes, ReachSandbox, UsesNothing},
	"sleepSandbox":         {tenant.ScopeSandboxes, ReachSandbox, UsesNothing},
	"getSandboxMetrics":    {tenant.ScopeSandboxes, ReachSandbox, UsesNothing},
	"listSandboxPorts":     {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"packSandbox":          {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"unpackSandbox":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"readSandboxFile":      {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"writeSandboxFile":     {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"deleteSandboxFile":    {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"makeSandboxFolder":    {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"listSandboxFiles":     {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"moveSandboxFile":      {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"statSandboxFile":      {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"watchSandboxFiles":    {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"listProcesses":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"startProcess":         {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"getProcess":           {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"deleteProcess":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"killAllProcesses":     {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"followProcess":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"signalProcess":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"writeProcess":         {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"waitProcess":          {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"listContexts":         {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"createContext":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"getContext":           {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"deleteContext":        {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"interruptContext":     {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"restartContext":       {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"runContext":           {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"openTerminal":         {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
	"createTerminalTicket": {tenant.ScopeSandboxes, ReachSandbox, UsesMore},
}

// Operation returns the rule of an operation that is open to tokens.
func Operation(id string) (rule Rule, open bool) {
	rule, open = rules[id]
	return rule, open
}

// Operations returns the number of operations that are open to tokens.
func Operations() int { return len(rules) }

// Holds reports why a token cannot be held to its bounds in an operation of this rule.
func (r Rule) Holds(t *tenant.Token) error {
	switch {
	case t.Session != "" && r.Reach != ReachSession && r.Reach != ReachAll:
		return fault.New(fault.Forbidden, "this token is bound to the session %s, and the operation is about more", t.Session)
	case t.Sandbox.ID != "" && r.Reach != ReachSandbox && r.Reach != ReachAll:
		return fault.New(fault.Forbidden, "this token is bound to the sandbox %s, and the operation is about more", t.Sandbox.Name)
	case r.Uses == UsesMore && (t.MaxCost > 0 || t.MaxExecutions > 0):
		return fault.New(fault.Forbidden, "this token has max_cost or max_executions, and the operation uses what neither counts")
	case r.Uses == UsesExecutions && t.MaxCost > 0 && t.MaxExecutions == 0:
		return fault.New(fault.Forbidden, "this token has max_cost, which counts no executions: it needs max_executions, too")
	}
	return nil
}

// Call is a call of an operation by a token.
type Call struct {
	Operation string // its id
	Name      string // the operation as people know it; "" for a request to something else
	Origins   []string
	Session   string // the agent session that the path names
	Sandbox   string // the named sandbox that the path names, or its id
	Of        string // the session of that sandbox
}

// Check rejects a call that a token is not for.
func (c *Call) Check(t *tenant.Token) error {
	if len(t.Origins) > 0 && (len(c.Origins) != 1 || !slices.Contains(t.Origins, c.Origins[0])) {
		return fault.New(fault.Forbidden, "this token is for pages of certain origins, and the request's Origin is none of them")
	}
	if c.Name == "" {
		return fault.New(fault.Forbidden, "this is not open to tokens: use an API key")
	}
	rule, open := rules[c.Operation]
	switch {
	case !open:
		return fault.New(fault.Forbidden, "%s is not open to tokens: use an API key", c.Name)
	case len(t.Operations) > 0 && !slices.Contains(t.Operations, c.Operation):
		return fault.New(fault.Forbidden, "this token is not for the operation %s", c.Operation)
	}
	if err := rule.Holds(t); err != nil {
		return err
	}
	switch {
	case rule.Reach == ReachSession && t.Session != "" && c.Session != t.Session:
		return fault.New(fault.Forbidden, "this token is bound to the session %s", t.Session)
	case rule.Reach == ReachSandbox && t.Sandbox.ID != "" && !t.Sandbox.Is(c.Of, c.Sandbox):
		return fault.New(fault.Forbidden, "this token is bound to the sandbox %s of the session %s", t.Sandbox.Name, t.Sandbox.Session)
	}
	return nil
}
