package initclient

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/atoll-run/atoll/internal/guest/wire"
)

// violation is an ErrProtocol that says what was wrong.
func violation(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}

// take deals with one frame; an error ends the conversation.
func (c *Client) take(f wire.Frame) error {
	if f.Type == wire.Welcome {
		return c.takeWelcome(f)
	}
	if f.Seq != c.last+1 {
		return violation("frame %d came after frame %d", f.Seq, c.last)
	}
	c.last = f.Seq
	c.mu.Lock()
	repeated := f.Seq <= c.taken
	c.mu.Unlock()
	if repeated {
		return nil // the guest answered a second Hello by starting over
	}
	var err error
	var tell func() // of the caller that waits for the frame
	switch f.Type {
	case wire.Reply:
		tell, err = c.takeReply(f)
	case wire.Stdout, wire.Stderr, wire.Ask, wire.Exit, wire.Refused:
		tell, err = c.takeRun(f)
	default:
		err = violation("frame of type %d", f.Type)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.taken = f.Seq
	c.mu.Unlock()
	// Not earlier: a Close that comes upon it is to acknowledge this frame too.
	if tell != nil {
		tell()
	}
	// The end of a run is not acknowledged before its caller has made use of it: a
	// host that is killed now leaves it to the next one.
	if c.fresh += len(f.Payload) + wire.HeaderSize; c.fresh >= wire.AckEvery && f.Type != wire.Exit {
		c.fresh = 0
		return c.acknowledge(context.Background()) // Close interrupts it
	}
	return nil
}

func (c *Client) takeWelcome(f wire.Frame) error {
	var m wire.WelcomeMessage
	if !m.Decode(f.Payload) || len(m.Version) > 256 || len(m.Warm) > 32 {
		return violation("malformed Welcome")
	}
	if f.ID != c.nonce {
		return violation("Welcome to someone else")
	}
	if m.Protocol != wire.Protocol {
		return fmt.Errorf("%w: guest %.40q speaks no version of the protocol this host does (%d)", ErrProtocol, m.Version, wire.Protocol)
	}
	c.last = f.Seq
	if c.greeted {
		return nil
	}
	c.greeted = true
	c.lost = c.dec.Lost
	c.info = Info{Version: m.Version, Warm: m.Warm}
	c.mu.Lock()
	c.taken, c.acked = f.Seq, f.Seq
	for _, id := range m.Runs {
		c.info.Runs = append(c.info.Runs, RunID(id))
		c.runs[RunID(id)] = newRun(nil, -1)
	}
	c.mu.Unlock()
	close(c.welcome)
	return nil
}

func (c *Client) takeReply(f wire.Frame) (tell func(), err error) {
	var m wire.ReplyMessage
	if !m.Decode(f.Payload) {
		return nil, violation("malformed Reply")
	}
	c.mu.Lock()
	call := c.calls[f.ID]
	delete(c.calls, f.ID)
	c.mu.Unlock()
	if call == nil {
		return nil, nil // to an earlier host's request, or one given up
	}
	var answer error
	if m.Error != "" {
		answer = &Error{Msg: m.Error}
	}
	return func() { call <- answer }, nil
}

func (c *Client) takeRun(f wire.Frame) (tell func(), err error) {
	id := RunID(f.ID)
	c.mu.Lock()
	r := c.runs[id]
	c.mu.Unlock()
	if r == nil {
		return nil, violation("frame for run %d, which is not live", id)
	}
	end, err := r.take(f)
	if end == nil {
		return nil, err
	}
	c.mu.Lock()
	delete(c.runs, id)
	c.mu.Unlock()
	return func() { r.end <- *end }, nil
}

// acknowledge tells the guest what it may forget: all up to the last frame, or
// to before the first that still waits for someone to attach.
func (c *Client) acknowledge(ctx context.Context) error {
	seq := c.due()
	if seq == 0 {
		return nil
	}
	return c.send.send(ctx, wire.Frame{Type: wire.Ack, Seq: seq}, nil)
}

// due returns the frame number to acknowledge, 0 when there is nothing new.
func (c *Client) due() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := c.taken
	for _, r := range c.runs {
		if first := r.firstHeld.Load(); first != 0 {
			seq = min(seq, first-1)
		}
	}
	if seq <= c.acked {
		return 0
	}
	c.acked = seq
	return seq
}

// ackPrefix is an acknowledgement that rides along with a request.
func (c *Client) ackPrefix() []byte {
	seq := c.due()
	if seq == 0 {
		return nil
	}
	return wire.AppendFrame(nil, wire.Frame{Type: wire.Ack, Seq: seq})
}

// output splits the payload of Stdout and Stderr.
func output(f wire.Frame) (offset uint64, data []byte, ok bool) {
	if len(f.Payload) <= wire.OffsetSize {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(f.Payload), f.Payload[wire.OffsetSize:], true
}
