package daemonclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/proto"
)

// Whole reports whether a folder has, with all below it, nothing that the host does
// not see: gVisor keeps pipes with a name to itself.
func (c *Client) Whole(ctx context.Context, path string) (bool, error) {
	r, err := c.call(ctx, proto.Request{Survey: &proto.Path{Path: []byte(path)}})
	return r.Count == 0, err
}

// Adopted is what a folder or file has to be called that Adopt gives its name.
const Adopted = proto.Adopted

// Adopt has fill make a folder or file named Adopted on the host, in the folder that the
// sandbox has at a path, and then gives it the name path: at once, and if nothing has
// that name. Folders above path are made. If it comes to nothing, what fill made is
// removed. The context that fill gets also ends with the conversation, by which time
// fill must not write any more.
func (c *Client) Adopt(ctx context.Context, path string, fill func(ctx context.Context, at string) error) error {
	x, r, err := c.begin(ctx, proto.Request{Adopt: &proto.Path{Path: []byte(path)}})
	if err != nil {
		return err
	}
	if len(r.Paths) != 1 || len(r.Paths[0]) > maxPath {
		return x.failed(fmt.Errorf("%w: a place that cannot be", ErrProtocol))
	}
	x.waitWithoutLimit()
	filling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := make(chan struct{})
	go func() { // nothing is to be heard before the End
		defer close(heard)
		if err := x.Await(); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(process.ErrGone)
		}
	}()
	filled := fill(filling, string(r.Paths[0]))
	x.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it is closed then
	<-heard
	if x.Waiting() {
		return x.failed(fmt.Errorf("%w: a frame ahead of the end", ErrProtocol))
	}
	x.line.setLimit(c.timeouts.Work, false)
	e := proto.Closing{}
	if filled != nil {
		e.Error = &proto.Error{Reason: proto.Failed, Text: "it could not be made"}
	}
	if err = x.Encode(proto.End, e); err == nil {
		err = x.Flush()
	}
	if err != nil {
		return x.failed(err)
	}
	if e, err = x.ended(); err != nil {
		return x.failed(err)
	}
	x.finish()
	switch {
	case filled != nil:
		return filled
	case e.Error != nil:
		return refusal(e.Error)
	}
	return nil
}

// ended reads the last frame.
func (x *exchange) ended() (e proto.Closing, err error) {
	t, err := x.Next()
	if err == nil && t != proto.End {
		err = fmt.Errorf("%w: a frame of type %d, where the end follows", ErrProtocol, t)
	}
	if err == nil {
		err = x.Decode(&e)
	}
	return e, err
}
