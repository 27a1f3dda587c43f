package httpapi

import (
	"context"
	"slices"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// TokenAuthenticator finds out whose token a text is. It fails with an Unauthorized fault.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, text string) (tenant.Principal, error)
}

// TokenRule says how a token may call an operation.
type TokenRule struct {
	Scope tenant.Scope // the operation's
	Reach TokenReach
	Uses  TokenUse
}

// TokenReach says which tokens may call an operation, beside those that are bound to nothing.
type TokenReach uint8

// Reaches of operations.
const (
	ReachTenant  TokenReach = iota // none: it is about more than one session or sandbox
	ReachAll                       // all: it is about nothing of the tenant's
	ReachSession                   // those of the path's session_id
	ReachSandbox                   // those of the path's sandbox
)

// TokenUse says what a call uses, and so which bounds hold it.
type TokenUse uint8

// Uses of operations.
const (
	UsesNothing    TokenUse = iota // it reads, or ends something
	UsesExecutions                 // executions, which max_executions counts and max_cost does not
	UsesModels                     // models and all that runs use, which max_cost counts; and their executions
	UsesMore                       // what neither counts
)

// tokenRules are the operations that are open to tokens. All others are not.
var tokenRules = map[string]TokenRule{
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

// TokenOperation returns the rule of an operation that is open to tokens.
func TokenOperation(id string) (rule TokenRule, open bool) {
	rule, open = tokenRules[id]
	return rule, open
}

// TokenOperations is how many operations are open to tokens.
func TokenOperations() int { return len(tokenRules) }

// Holds reports why a token cannot be held to its bounds in an operation of this rule.
func (r TokenRule) Holds(t *tenant.Token) error {
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

// heldToToken holds a caller who has a token to what the token is for. A program's call is
// held by the token's scopes alone: the call that started the program was held to the rest.
func (c *Call) heldToToken(t *tenant.Token) error {
	if t == nil || innerOf(c.R.Context()) != nil {
		return nil
	}
	if len(t.Origins) > 0 {
		given := c.R.Header.Values("Origin")
		if len(given) != 1 || !slices.Contains(t.Origins, given[0]) {
			return fault.New(fault.Forbidden, "this token is for pages of certain origins, and the request's Origin is none of them")
		}
	}
	if c.op == nil {
		return fault.New(fault.Forbidden, "this is not open to tokens: use an API key")
	}
	rule, open := tokenRules[c.op.ID]
	switch {
	case !open:
		return fault.New(fault.Forbidden, "%s is not open to tokens: use an API key", c.describe())
	case len(t.Operations) > 0 && !slices.Contains(t.Operations, c.op.ID):
		return fault.New(fault.Forbidden, "this token is not for the operation %s", c.op.ID)
	}
	if err := rule.Holds(t); err != nil {
		return err
	}
	switch rule.Reach {
	case ReachSession:
		if t.Session != "" && c.Path("session_id") != t.Session {
			return fault.New(fault.Forbidden, "this token is bound to the session %s", t.Session)
		}
	case ReachSandbox:
		if t.Sandbox.ID == "" {
			return nil
		}
		session := sandbox.Default
		if q := c.R.URL.Query(); q.Has("session") {
			session = q.Get("session")
		}
		if !t.Sandbox.Is(session, c.Path("sandbox")) {
			return fault.New(fault.Forbidden, "this token is bound to the sandbox %s of the session %s", t.Sandbox.Name, t.Sandbox.Session)
		}
	case ReachTenant, ReachAll:
	}
	return nil
}

// describe names a call's operation for people.
func (c *Call) describe() string {
	if c.op.ID != "" {
		return "the operation " + c.op.ID
	}
	return c.op.Method + " " + c.op.Path
}

// find finds the caller of a request by a bearer's text, which is a key or a token.
func (s *Server) find(ctx context.Context, text string) (tenant.Principal, error) {
	if _, ok := tenant.ParseToken(text); ok && s.tokens != nil {
		return s.tokens.AuthenticateToken(ctx, text)
	}
	return s.auth.Authenticate(ctx, text)
}
