package daemonclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// exchange is a request and what comes of it, on a connection of its own.
type exchange struct {
	*proto.Conn
	client *Client
	line   *timedConn
	ctx    context.Context
	stop   func() bool // ends the watch over ctx
}

// ask makes a request, which is sent with whatever follows it at once.
func (c *Client) ask(ctx context.Context, q proto.Request) (*exchange, error) {
	return c.askFor(ctx, q, false)
}

func (c *Client) askFor(ctx context.Context, q proto.Request, urgent bool) (*exchange, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	conn, err := c.acquire(ctx, urgent)
	if err != nil {
		return nil, err
	}
	x := &exchange{Conn: conn, client: c, line: conn.Transport.(*timedConn), ctx: ctx}
	x.line.wasFrozen = c.wasFrozen
	x.line.setLimit(c.timeouts.Silence, false)
	x.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if err := conn.Encode(proto.Ask, &q); err != nil {
		x.drop()
		return nil, fault.New(fault.Invalid, "the request is longer than %d bytes", proto.MaxHead)
	}
	return x, nil
}

// answerTimeout is how long the answer to a request may take; 0 for no limit.
func (p Timeouts) answerTimeout(q *proto.Request) time.Duration {
	switch {
	case q.Wait != nil, q.Write != nil:
		return 0
	case q.List != nil, q.Glob != nil, q.Remove != nil, q.Move != nil, q.Watch != nil, q.Create != nil, q.Unpack != nil, q.Skills != nil, q.Survey != nil:
		return p.Work
	case q.Connect != nil:
		return p.Silence + time.Duration(q.Connect.Wait)
	case q.Accept != nil:
		return p.Silence + time.Duration(q.Accept.Wait)
	}
	return p.Silence
}

// answer reads the reply, for which there is so much time.
func (x *exchange) answer(within time.Duration) (r proto.Reply, err error) {
	x.line.setLimit(within, false)
	t, err := x.Next()
	if err == nil && t != proto.Answer {
		err = fmt.Errorf("%w: a frame of type %d, where an answer follows", ErrProtocol, t)
	}
	if err == nil {
		err = x.Decode(&r)
	}
	return r, err
}

// finish gives the connection back: the exchange went to its end.
func (x *exchange) finish() {
	if x.stop() {
		x.client.release(x.Conn)
	} else {
		x.client.drop(x.Conn)
	}
}

// drop ends the exchange in its middle.
func (x *exchange) drop() {
	x.stop()
	x.client.drop(x.Conn)
}

// limitContent is for content that follows: each piece gives time for the next.
func (x *exchange) limitContent() { x.line.setLimit(x.client.timeouts.Silence, true) }

// waitWithoutLimit is for frames that follow at any time, such as output.
func (x *exchange) waitWithoutLimit() { x.line.setLimit(0, false) }

// failed ends the exchange, and returns why.
func (x *exchange) failed(err error) error {
	x.drop()
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	err = asGone(err)
	if errors.Is(err, ErrProtocol) {
		x.client.fail(err)
	}
	if why := x.client.failure(); why != nil {
		return why
	}
	return err
}

// begin makes a request and returns when it was answered well, for what comes then.
func (c *Client) begin(ctx context.Context, q proto.Request) (*exchange, proto.Reply, error) {
	x, err := c.ask(ctx, q)
	if err != nil {
		return nil, proto.Reply{}, err
	}
	if err := x.Flush(); err != nil {
		return nil, proto.Reply{}, x.failed(err)
	}
	r, err := x.answer(c.timeouts.answerTimeout(&q))
	if err != nil {
		return nil, r, x.failed(err)
	}
	if r.Error != nil {
		x.finish()
		return nil, r, refusal(r.Error)
	}
	return x, r, nil
}

// call makes a request that is over with its answer.
func (c *Client) call(ctx context.Context, q proto.Request) (proto.Reply, error) {
	x, r, err := c.begin(ctx, q)
	if err == nil {
		x.finish()
	}
	return r, err
}

// send makes a request that content follows.
func (c *Client) send(ctx context.Context, q proto.Request, content io.Reader) (proto.Reply, error) {
	x, err := c.ask(ctx, q)
	if err != nil {
		return proto.Reply{}, err
	}
	x.limitContent()
	_, err = x.Copy(content)
	if e, ok := errors.AsType[*proto.ReadError](err); ok {
		x.drop() // by which the guest daemon knows that it is not whole
		return proto.Reply{}, e.Err
	}
	if err == nil {
		err = x.Encode(proto.End, proto.Closing{})
	}
	if err == nil {
		err = x.Flush()
	}
	within := c.timeouts.answerTimeout(&q)
	switch {
	case errors.Is(err, ErrSilent):
		return proto.Reply{}, x.failed(err)
	case err != nil:
		// It may have hung up because of what it has answered.
		within = goodbye
	}
	r, e := x.answer(within)
	switch {
	case e != nil && err != nil:
		return r, x.failed(err)
	case e != nil:
		return r, x.failed(e)
	case r.Error != nil:
		x.drop() // how much was read is not known
		return r, refusal(r.Error)
	case err != nil:
		return r, x.failed(fmt.Errorf("%w: content was taken that was not sent", ErrProtocol))
	}
	x.finish()
	return r, nil
}

// kinds are those of what guest daemons refuse for.
var kinds = map[proto.Reason]fault.Kind{
	proto.Failed: fault.Conflict, proto.Invalid: fault.Invalid, proto.Mistaken: fault.Invalid, proto.Missing: fault.NotFound,
	proto.Exists: fault.Conflict, proto.Denied: fault.Forbidden, proto.Full: fault.Exhausted, proto.Limited: fault.Exhausted,
	proto.Files: fault.Conflict,
}

// maxText bounds what is passed on of a guest daemon's words, in bytes.
const maxText = 2 << 10

// refusal is what a caller is told of a guest daemon's refusal.
func refusal(e *proto.Error) error {
	text := strings.ToValidUTF8(e.Text[:min(len(e.Text), maxText)], "�")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '�'
		}
		return r
	}, text)
	kind, ok := kinds[e.Reason]
	if !ok {
		kind = fault.Conflict
	}
	f := fault.New(kind, "%s", text)
	if e.Program {
		f.Code = process.NoExecutable
		if e.Reason == proto.Missing {
			f.Code = process.NoProgram
		}
	}
	switch e.Reason {
	case proto.Full:
		f.Dimension = "disk"
	case proto.Limited:
		f.Dimension = "sandbox"
	case proto.Files:
		f.Code = process.TooManyFiles
		f.Msg += "; the sandbox has no free file descriptor. End programs that hold files open, then retry; Atoll puts an unused sandbox to sleep and wakes it, which frees leaked descriptors"
	}
	return f
}
