package initclient

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Client is a conversation with one guest. Its methods may be called
// concurrently.
type Client struct {
	out  *os.File // from the guest
	send *sender
	info Info

	nonce   uint64
	welcome chan struct{} // closed at the first Welcome
	done    chan struct{} // closed when the reader has ended
	once    sync.Once

	mu    sync.Mutex
	err   error                 // guarded by mu; why the conversation is over
	next  uint64                // guarded by mu; last request's ID
	calls map[uint64]chan error // guarded by mu
	runs  map[RunID]*run        // guarded by mu
	acked uint64                // guarded by mu; last frame acknowledged
	taken uint64                // guarded by mu; last frame delivered or held

	// The reader's own.
	dec     *wire.Decoder
	greeted bool
	lost    int64  // bytes passed over before the first Welcome
	last    uint64 // number of the frame before the next
	fresh   int    // payload bytes since the last acknowledgement
}

// again is how long Dial waits for an answer before it asks again. A guest that
// is still being started finds the first question in the FIFO.
const again = time.Second

// Dial opens the conversation with a guest that may still be starting, or that
// an earlier process spoke to. The Channel stays the caller's, and may be
// dialled again once the Client is closed, but not before.
func Dial(ctx context.Context, ch runtime.Channel) (*Client, error) {
	to, err := own(ch.ToGuest)
	if err != nil {
		return nil, fmt.Errorf("dial guest: %w", err)
	}
	from, err := own(ch.FromGuest)
	if err != nil {
		to.Close()
		return nil, fmt.Errorf("dial guest: %w", err)
	}
	var nonce [8]byte
	rand.Read(nonce[:])
	c := &Client{
		out:     from,
		send:    newSender(to),
		nonce:   binary.LittleEndian.Uint64(nonce[:]),
		welcome: make(chan struct{}),
		done:    make(chan struct{}),
		calls:   make(map[uint64]chan error),
		runs:    make(map[RunID]*run),
		dec:     wire.NewDecoder(wire.MaxPayload),
	}
	c.next = c.nonce >> 1 // answers to an earlier host's requests are not ours
	c.dec.Seek(c.nonce)
	go c.read()
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("dial guest: %w", err)
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	hello := wire.HelloMessage{Min: wire.Protocol, Max: wire.Protocol}
	timer := time.NewTicker(again)
	defer timer.Stop()
	var padding func() []byte
	for {
		if err := c.send.send(ctx, wire.Frame{Type: wire.Hello, ID: c.nonce, Payload: hello.Append(nil)}, padding); err != nil {
			return err
		}
		// What keeps the guest from answering may be a frame it waits for the rest
		// of. More than a frame of nothing ends any such.
		padding = func() []byte { return make([]byte, wire.MaxRequest) }
		select {
		case <-c.welcome:
			return nil
		case <-timer.C:
		case <-c.done:
			return c.failure()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Info returns what the guest said of itself when it was dialled.
func (c *Client) Info() Info { return c.info }

// Done is closed when the conversation is over: by Close, or because the guest
// broke the protocol. The end of a sandbox does not show here, because the
// host's own ends keep the FIFOs open; the sandbox's Instance tells.
func (c *Client) Done() <-chan struct{} { return c.done }

// closeTime is how long a guest that takes nothing holds Close up.
const closeTime = time.Second

// Close ends the conversation, and nothing else: programs go on, and their
// output waits for the next Dial. It returns when the reader has ended.
func (c *Client) Close() error {
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		_ = c.acknowledge(ctx)
		cancel()
		c.fail(ErrClosed)
	})
	<-c.done
	return nil
}

// Leave is Close without a last acknowledgement: whatever came since the one
// before comes again for the next Client. A run's sink has been called for all
// that came when it returns.
func (c *Client) Leave() {
	c.once.Do(func() { c.fail(ErrClosed) })
	<-c.done
}

// fail ends the conversation for a reason; the first reason stays.
func (c *Client) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.out.Close()
	c.send.f.Close()
}

// failure returns why the conversation is over.
func (c *Client) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return ErrClosed
	}
	return c.err
}

// read is the reader goroutine. It ends when the Client's end is closed.
func (c *Client) read() {
	defer close(c.done)
	for {
		n, err := c.out.Read(c.dec.Space())
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				err = ErrClosed
			}
			c.fail(err)
			return
		}
		c.dec.Advance(n)
		for {
			f, ok := c.dec.Next()
			if !ok {
				break
			}
			if err := c.take(f); err != nil {
				c.fail(err)
				return
			}
		}
		if c.greeted && c.dec.Lost != c.lost {
			c.fail(fmt.Errorf("%w: bytes that are no frame", ErrProtocol))
			return
		}
	}
}
