package mcp

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	stdjson "encoding/json"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// envelope is more than the bytes that a message has beside an output and the id.
const envelope = 1 << 10

// fit is an output as a result that the client can read: whole where the answer can still
// be application/json, otherwise cut at the bound of an event.
func (r *request) fit(out any, traceID string) (*mcp.CallToolResult, error) {
	out, raw, err := tools.Fit(out, r.size, r.out.room)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return refusal(f), nil
	}
	if err != nil {
		return nil, err
	}
	f, ok := out.(interface{ Failed() bool })
	return &mcp.CallToolResult{
		Meta:    mcp.Meta{"run.atoll/trace_id": traceID, "run.atoll/session": r.Pool},
		Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}}, StructuredContent: stdjson.RawMessage(raw),
		IsError: ok && f.Failed(),
	}, nil
}

// size is at least the bytes of the message that has an output for programs and as text,
// as the SDK writes both.
func (r *request) size(raw []byte) int {
	structured, quotes := len(raw), 0
	for _, c := range raw {
		switch c {
		case '"', '\\':
			quotes++ // of the text
		case '<', '>', '&':
			structured += len(`\u003c`) - 1
		case 0xe2: // U+2028 and U+2029 begin so
			structured += len(`\u2028`) - len("\u2028")
		}
	}
	return 2*structured + quotes + len(r.Pool) + len(r.message.id) + envelope
}
