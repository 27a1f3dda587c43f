package imagequery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Times that a call may take.
const (
	checkTime   = 5 * time.Second  // the executor reads files
	prepareTime = 15 * time.Second // the executor also records a request
)

// maxText is the maximum length in bytes of a text of an executor, which callers and models read. It
// leaves room for the longest line of a build.
const maxText = 4096

// Client asks executors. It implements Images for gateways that run as separate processes. Each answer
// is that of one executor.
type Client struct{ executors remote.Caller }

// NewClient returns a Client that sends its calls through executors.
func NewClient(executors remote.Caller) *Client { return &Client{executors} }

var _ Images = (*Client)(nil)

// CheckImage implements Images. It waits at most 5 s.
func (c *Client) CheckImage(ctx context.Context, name string) error {
	_, err := ask(ctx, c, checkTime, checkImage, name)
	return err
}

// CheckPackages implements Images. It waits at most 5 s.
func (c *Client) CheckPackages(ctx context.Context, image string, s *requirement.Set) error {
	_, err := ask(ctx, c, checkTime, checkPackages, packagesQuery{image, *s})
	return err
}

// Resolve implements Images. It waits at most 5 s.
func (c *Client) Resolve(ctx context.Context, asked string) (string, error) {
	return text(ask(ctx, c, checkTime, resolve, asked))
}

// Prepare implements Images. It waits at most 15 s.
func (c *Client) Prepare(ctx context.Context, image string, extras []string) (string, error) {
	return text(ask(ctx, c, prepareTime, prepare, extrasQuery{image, extras}))
}

// Lacking implements Images. It waits at most 5 s.
func (c *Client) Lacking(ctx context.Context, image string, extras []string) (string, error) {
	return text(ask(ctx, c, checkTime, lacking, extrasQuery{image, extras}))
}

// ask sends a call and waits for its answer at most for limit.
func ask[In, Out any](ctx context.Context, c *Client, limit time.Duration, call remote.Call[In, Out], in In) (out Out, err error) {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if out, err = call.Do(within, c.executors, in); err == nil {
		return out, nil
	}
	var none Out
	f, isFault := errors.AsType[*fault.Error](err)
	switch {
	case ctx.Err() != nil:
		return none, fault.Wrap(fault.Unavailable, context.Cause(ctx), "the request ended before an executor answered a question about images; nothing was started. Retry")
	case within.Err() != nil && (!isFault || f.Kind == fault.Unavailable || f.Kind == fault.Internal):
		return none, fault.Wrap(fault.Unavailable, err, fmt.Sprintf("no executor answered a question about images within %s; nothing was started. Retry in a few seconds; if this lasts, ask the operator to check that an executor runs", limit))
	case !isFault:
		return none, fmt.Errorf("ask an executor (%s): %w", string(call), err)
	}
	return none, check(f, string(call))
}

// check limits the faults of an executor to those that an answer can have. An executor that was taken
// over could otherwise make a caller believe that its key is not valid.
func check(f *fault.Error, call string) error {
	switch f.Kind {
	case fault.Invalid, fault.Conflict, fault.Exhausted, fault.Unavailable:
		if f.Msg == shorten(f.Msg) {
			return f
		}
		short := *f
		short.Msg = shorten(f.Msg)
		return &short
	}
	return fault.Wrap(fault.Internal, f, "an executor could not answer "+call+"; its log says why")
}

// text shortens an answer that callers or models read.
func text(s string, err error) (string, error) { return shorten(s), err }

func shorten(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return strings.ToValidUTF8(s, "")
}
