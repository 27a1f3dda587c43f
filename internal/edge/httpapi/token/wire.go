package token

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// NewToken is the body that makes a token.
type NewToken struct {
	ExpiresIn      *wire.Seconds `json:"expires_in,omitzero" minimum:"1" maximum:"86400" default:"900" doc:"Seconds until it expires."`
	Scopes         *[]string     `json:"scopes,omitzero" doc:"Scopes of the token, from execute, read, sandboxes and tools; the key must have them too. If omitted, the scopes that operations need; with session or sandbox, all of these that the key has."`
	Operations     *[]string     `json:"operations,omitzero" doc:"The operations that it is for, by their ids in this document. If omitted, all that are open to tokens."`
	Rights         *[]string     `json:"rights,omitzero" doc:"Rights in sessions beyond sending messages: confirm approves or denies tool calls that wait, outcomes defines outcomes that have no check. None if omitted."`
	Session        *wire.Text    `json:"session,omitzero" maxLength:"64" doc:"Id of the session of an agent that it reaches, and no other."`
	Sandbox        *wire.Text    `json:"sandbox,omitzero" maxLength:"128" doc:"Name or sandbox_id of the named sandbox that it reaches, and no other."`
	SandboxSession *wire.Text    `json:"sandbox_session,omitzero" maxLength:"256" doc:"The session that has the sandbox; default if omitted."`
	Origins        *[]string     `json:"origins,omitzero" doc:"Web origins, such as https://app.example.com, whose pages may use it: at most 16. A request with another Origin, or none, is refused. If omitted, any."`
	MaxCost        *float64      `json:"max_cost,omitzero" doc:"US dollars that it may be charged: models, tools and sandboxes of responses and of turns of sessions. No model is asked once that is reached."`
	MaxExecutions  *int64        `json:"max_executions,omitzero" minimum:"1" maximum:"1000000000" doc:"Executions that it may begin, those of its responses and turns among them."`
}

// Token is a token as the API shows it.
type Token struct {
	ID            string        `json:"id" doc:"tok_, the digits of its key's id, and 16 hexadecimal digits. Records and the audit trail name it in place of a key."`
	Token         string        `json:"token,omitzero" doc:"The token itself: only in the answer that made it."`
	KeyID         string        `json:"key_id" doc:"The key that made it."`
	Scopes        []string      `json:"scopes" doc:"Scopes: the operations that the token may call."`
	Operations    []string      `json:"operations" doc:"Empty for all that are open to tokens."`
	Rights        []string      `json:"rights" doc:"Rights in sessions beyond sending messages: confirm, outcomes."`
	Session       *string       `json:"session" doc:"null for any."`
	Sandbox       *TokenSandbox `json:"sandbox" doc:"null for any."`
	Origins       []string      `json:"origins" doc:"Empty for any."`
	MaxCost       *float64      `json:"max_cost" doc:"null for no bound."`
	Cost          float64       `json:"cost" doc:"US dollars that were charged to it."`
	MaxExecutions *int64        `json:"max_executions" doc:"null for no bound."`
	Executions    int64         `json:"executions" doc:"That it has begun."`
	CreatedAt     time.Time     `json:"created_at"`
	ExpiresAt     time.Time     `json:"expires_at" doc:"When it stops being valid."`
}

// TokenSandbox is the sandbox that a token reaches.
type TokenSandbox struct {
	ID      string `json:"sandbox_id" doc:"The id of the sandbox."`
	Session string `json:"session" doc:"The session that it is in."`
	Name    string `json:"name"`
}

func tokenOf(t tenant.Token) Token {
	out := Token{
		ID: t.ID, KeyID: t.Key, Operations: t.Operations, Session: httpapi.OrNull(t.Session), Origins: t.Origins,
		Scopes: httpapi.Each(t.Scopes, func(s tenant.Scope) string { return string(s) }),
		Rights: httpapi.Each(t.Rights, func(r tenant.TokenRight) string { return string(r) }),
		Cost:   t.Cost.Dollars(), Executions: t.Executions, CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt,
	}
	if s := t.Sandbox; s.ID != "" {
		out.Sandbox = &TokenSandbox{s.ID, s.Session, s.Name}
	}
	if t.MaxCost > 0 {
		out.MaxCost = new(t.MaxCost.Dollars())
	}
	if t.MaxExecutions > 0 {
		out.MaxExecutions = new(t.MaxExecutions)
	}
	return out
}
