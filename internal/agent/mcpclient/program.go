package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// Command is a server that runs as a program in a sandbox and speaks over its input and output.
type Command struct {
	// Tenant, Key and Environment identify the caller; Session owns the sandbox.
	Tenant, Key, Environment, Session string

	Argv []string
	Env  map[string]string `json:",omitempty"`
}

// equal reports whether two Commands, either of which may be nil, start the same program.
func (c *Command) equal(other *Command) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Tenant == other.Tenant && c.Key == other.Key && c.Environment == other.Environment && c.Session == other.Session &&
		slices.Equal(c.Argv, other.Argv) && maps.Equal(c.Env, other.Env)
}

// Program is a running Command.
type Program interface {
	// Write writes a line to the program's input. Only one Write runs at a time.
	Write(ctx context.Context, line []byte) error
	// Read returns the next line of the program's output, without the newline. A line longer than
	// most bytes is ErrLine. At the end of the output, the error says how the program ended.
	Read(most int) ([]byte, error)
	// Close ends the program and unblocks Read. It may be called more than once.
	Close() error
}

// ErrLine reports that a program wrote a line longer than the limit.
var ErrLine = errors.New("it wrote a line that is too long")

// Starter starts programs.
type Starter interface {
	Start(ctx context.Context, c *Command) (Program, error)
}

// Limits of a program.
const (
	maxUnasked = 1000 // messages between two requests to it
	// startTime replaces connectTime, because Atoll may have to create the sandbox first.
	startTime = 6 * connectTime
)

// program is the mcp.Transport to a Program, and its mcp.Connection.
type program struct {
	Program
	once    sync.Once
	writing chan struct{} // has an entry while a line is written, which takes several steps

	messages atomic.Int64 // since it was asked last
	bytes    atomic.Int64
	why      atomic.Pointer[error] // why it is unusable; nil while it is usable
}

var (
	_ mcp.Transport  = (*program)(nil)
	_ mcp.Connection = (*program)(nil)
)

// Connect implements mcp.Transport.
func (p *program) Connect(context.Context) (mcp.Connection, error) { return p, nil }

// SessionID implements mcp.Connection.
func (p *program) SessionID() string { return "" }

func (p *program) fail(err error) error {
	p.why.CompareAndSwap(nil, &err)
	return err
}

// Read implements mcp.Connection.
func (p *program) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := p.Program.Read(maxBody)
		if err != nil {
			return nil, p.fail(err)
		}
		if p.bytes.Add(int64(len(line))) > maxBody {
			return nil, p.fail(errLarge)
		}
		if _, err := wire.Weigh("its message", line); err != nil {
			return nil, p.fail(errLarge)
		}
		if p.messages.Add(1) > maxUnasked {
			return nil, p.fail(errChatty)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			return nil, p.fail(errors.New("its output is not MCP: each line must be a message; write logs to stderr"))
		}
		return m, nil
	}
}

// Write implements mcp.Connection.
func (p *program) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case p.writing <- struct{}{}:
		defer func() { <-p.writing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if why := p.why.Load(); why != nil { // perhaps within a line
		return *why
	}
	q, ok := m.(*jsonrpc.Request)
	asks := ok && q.IsCall()
	if asks {
		p.messages.Store(0)
		p.bytes.Store(0)
	}
	if err := p.Program.Write(ctx, append(line, '\n')); err != nil { // a line without its end is no question
		return p.fail(fmt.Errorf("it does not read: %w", err))
	}
	if s, ok := ctx.Value(seenKey{}).(*seen); ok && asks {
		s.sent.Store(true)
	}
	return nil
}

// Close implements mcp.Connection.
func (p *program) Close() (err error) {
	p.once.Do(func() {
		_ = p.fail(errors.New("it was stopped"))
		err = p.Program.Close()
	})
	return err
}
