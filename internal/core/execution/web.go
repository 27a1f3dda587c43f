package execution

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// WebAccess lets a program call the services of the web from inside its sandbox, where it
// needs no network for that.
type WebAccess struct {
	Key string // id of the key that the calls are made with
	// Environment is the id of the one that the program works in. Held calls are held to its network.
	Environment string `json:",omitzero"`
	Held        bool   `json:",omitzero"`
	// Token is what the program shows. It holds for this execution alone, and only in its
	// sandbox.
	Token string
	// Left is what the calls may cost together; nil for no bound.
	Left *usage.Money `json:",omitzero"`
}

// WebCall is a call that a program makes.
type WebCall struct {
	TraceID string // of its execution
	Tenant  string
	Key     string
	// Environment and Held are as in WebAccess.
	Environment string `json:",omitzero"`
	Held        bool   `json:",omitzero"`
	Path        string // one of web.Paths
	Body        []byte // JSON
	// Left is what the calls of the execution may cost together; nil for no bound.
	Left *usage.Money `json:",omitzero"`
}

// WebAnswer is what the call came to, as HTTP has it. It has at most MaxWebAnswer bytes.
type WebAnswer struct {
	Status     int
	RetryAfter string // "" for nothing known
	Body       []byte // JSON
}

// MaxWebAnswer bounds the Body of a WebAnswer.
const MaxWebAnswer = 4<<20 - 4<<10

// Web makes the calls of programs: a gateway does, for any executor.
type Web interface {
	// CallWeb makes a call, records it and charges for it. When ctx ends it gives the call
	// up, and returns when it is known whether it was charged for. An error is a
	// *fault.Error: nothing is known of the call.
	CallWeb(ctx context.Context, c WebCall) (WebAnswer, error)
}
