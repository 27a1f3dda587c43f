package httpapi

import (
	"context"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
)

// Socket is a WebSocket that does not wait forever for a client that does not read.
type Socket struct{ *websocket.Conn }

// Send sends a message.
func (s Socket) Send(ctx context.Context, kind websocket.MessageType, p []byte) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return s.Write(ctx, kind, p)
}

// Tell sends a value as a text message of JSON.
func (s Socket) Tell(ctx context.Context, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.Send(ctx, websocket.MessageText, text)
}
