package atoll

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"
)

// Terminal opens a terminal over a WebSocket. Binary messages carry the input and the output; each
// text message is a TerminalMessage.
func (c *Client) Terminal(ctx context.Context, ref SandboxRef, q url.Values) (*websocket.Conn, error) {
	q.Set("session", ref.Session)
	target := "ws" + strings.TrimPrefix(c.base, "http") + ref.path("terminal") + "?" + q.Encode()
	//nolint:bodyclose // the library says that there is nothing to close
	conn, res, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.key}},
	})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, refused(res)
		}
		return nil, fmt.Errorf("no answer from %s: %w", c.base, err)
	}
	return conn, nil
}

// TerminalTicket creates a ticket with which a browser can open one terminal of a sandbox. It
// expires after 30 seconds.
func (c *Client) TerminalTicket(ctx context.Context, ref SandboxRef) (TerminalTicket, error) {
	return call[TerminalTicket](ctx, c, http.MethodPost, ref.path("terminal", "ticket"), ref.query(), nil)
}
