package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// events keeps what was sent, for clients whose connection broke, up to maxReplay
// bytes of all sessions together: the oldest go first. It also is who the SDK
// tells that a session has ended.
type events struct {
	*mcp.MemoryEventStore
	ended func(sessionID string)
}

func newEvents(ended func(string)) *events {
	e := &events{mcp.NewMemoryEventStore(nil), ended}
	e.SetMaxBytes(maxReplay)
	return e
}

// SessionClosed implements mcp.EventStore.
func (e *events) SessionClosed(ctx context.Context, sessionID string) error {
	e.ended(sessionID)
	return e.MemoryEventStore.SessionClosed(ctx, sessionID)
}
