package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/web"
)

// ErrRejected is in the chain of errors of servers that do not take the credentials.
var ErrRejected = errors.New("it rejects the credentials")

// Other kinds of failures. Errors wrap them.
var (
	errAnswered = errors.New("it answers with an error")
	errAway     = errors.New("it cannot be reached, or does not speak MCP")
)

// Kind describes an error without the failed server's words, because a model could follow them as
// instructions.
func Kind(err error) string {
	for _, kind := range []error{ErrRejected, errSlow, errAnswered, errAway} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "its list of tools cannot be used"
}

// maxMessage bounds what is passed on of a server's own words, in characters.
const maxMessage = 500

// failure is an Unavailable fault, which says why a server did not do what it was asked; or
// the cause of the caller's end.
func (p *peer) failure(ctx context.Context, err error, s *seen) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errSlow) {
		return cause
	}
	return fault.Wrap(fault.Unavailable, p.kind(ctx, err, s), p.why(ctx, err, s))
}

func (p *peer) kind(ctx context.Context, err error, s *seen) error {
	switch {
	case ctx.Err() != nil:
		return errSlow
	case s.status.Load() == http.StatusUnauthorized:
		return ErrRejected
	case s.status.Load() >= 300 || answered(err) != nil:
		return errAnswered
	}
	return errAway
}

func (p *peer) why(ctx context.Context, err error, s *seen) string {
	status := int(s.status.Load())
	said := p.said(err)
	switch {
	case ctx.Err() != nil:
		return errSlow.Error()
	case p.target.Command != nil && said != "":
		return "it answers with an error" + said
	case p.program != nil && p.program.why.Load() != nil:
		return web.Line(p.target.cover().Replace((*p.program.why.Load()).Error()), maxMessage)
	case p.target.Command != nil:
		why := err.Error()
		if f, ok := errors.AsType[*fault.Error](err); ok {
			why = f.Msg
		}
		return web.Line(p.target.cover().Replace(why), maxMessage)
	case s.large.Load():
		return fmt.Sprintf("%s: more than %d bytes, or lists with more elements than are read", errLarge, maxBody)
	case errors.Is(err, errChatty):
		return errChatty.Error()
	case status >= 300 && status <= 399:
		return errCrossed.Error()
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Sprintf("it does not take the credentials (%d)%s", status, said)
	case status >= 400:
		return fmt.Sprintf("it answers %d%s", status, said)
	case said != "":
		return "it answers with an error" + said
	}
	return unreachable(err)
}

// Codes of the SDK's own errors for requests that got no answer: the client is closing, the
// server is, rejected by the transport.
const (
	firstOwn = -32005
	lastOwn  = -32003
)

// answered returns a server's own error, nil for one of the SDK or of HTTP.
func answered(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && (e.Code < firstOwn || e.Code > lastOwn) {
		return e
	}
	return nil
}

// said is a server's own message, with what leads to it.
func (p *peer) said(err error) string {
	e := answered(err)
	if e == nil || e.Message == "" {
		return ""
	}
	return ": " + web.Line(p.target.cover().Replace(e.Message), maxMessage)
}

func unreachable(err error) string {
	if a, ok := errors.AsType[*net.AddrError](err); ok {
		return "its address is " + a.Err
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return "its host name does not resolve"
	}
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		return why
	}
	if o, ok := errors.AsType[*net.OpError](err); ok {
		return "it cannot be reached: " + strings.TrimSpace(o.Op+" "+o.Err.Error())
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return errSlow.Error()
	}
	return "it does not speak MCP over Streamable HTTP, or the connection was cut"
}
