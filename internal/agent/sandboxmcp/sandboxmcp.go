// Package sandboxmcp runs MCP servers as programs in the sandboxes of sessions, with the rights
// of the sandbox's other programs and no more.
//
// A program runs while package mcpclient has a session with it, at most 24 hours. The session ends
// with this process, or when it is idle. If this process is killed, Atoll ends its programs when
// it starts the next program in the sandbox.
package sandboxmcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/mcpclient"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/redact"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Set opens the sandboxes of sessions; *tools.Set implements it.
type Set interface {
	Open(ctx context.Context, c *tools.Caller, name string) (sandbox.Handle, error)
}

// Starter implements mcpclient.Starter.
type Starter struct {
	Set     Set
	Callers sandboxcall.Callers
}

var _ mcpclient.Starter = (*Starter)(nil)

// prefix starts the ids of all programs' processes; ours starts those of this server process.
const prefix = "mcp-"

var ours = prefix + strings.TrimPrefix(string(process.NewID()), "p-") + "-"

const (
	maxLife   = 24 * time.Hour
	maxStderr = 2 << 10 // bytes of the end of stderr in errors
	endTime   = 10 * time.Second
)

// Start implements mcpclient.Starter.
func (s *Starter) Start(ctx context.Context, c *mcpclient.Command) (_ mcpclient.Program, err error) {
	p, err := sandboxcall.Caller(ctx, s.Callers, c.Tenant, c.Key, c.Environment, tenant.ScopeTools)
	if err != nil {
		return nil, err
	}
	h, err := s.Set.Open(ctx, &tools.Caller{Principal: p, Session: c.Session, TraceID: execution.NewTraceID()}, sandbox.Default)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	if err := sweep(ctx, h.Guest()); err != nil {
		return nil, err
	}
	covers, err := h.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	id := process.ID(ours + strings.TrimPrefix(string(process.NewID()), "p-"))
	if _, err := h.Guest().Start(ctx, process.Spec{ID: id, Argv: c.Argv, Env: safe(c.Argv, env), Input: true, Timeout: maxLife, Lossless: true, Isolation: process.Guarded}); err != nil {
		return nil, err
	}
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	out, err := h.Guest().Follow(follow, id, 0)
	if err != nil {
		stop()
		return nil, errors.Join(err, h.Guest().Discard(context.WithoutCancel(ctx), id))
	}
	return &program{handle: h, id: id, out: out, covers: covers, stop: stop}, nil
}

// safe adds a variable that keeps Python from importing modules from the working directory, which
// the agent can write, unless env already sets the variable.
func safe(argv, env []string) []string {
	if slices.Contains(argv, "-m") && !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, safePath) }) {
		return append(env, safePath+"1")
	}
	return env
}

const safePath = "PYTHONSAFEPATH="

// sweep ends the programs that dead server processes left in a sandbox.
func sweep(ctx context.Context, g sandbox.Guest) error {
	all, err := g.Processes(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if id := string(all[i].ID); strings.HasPrefix(id, prefix) && !strings.HasPrefix(id, ours) {
			if err := g.Discard(ctx, all[i].ID); err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
		}
	}
	return nil
}

// program is a running MCP server.
type program struct {
	handle sandbox.Handle
	id     process.ID
	covers *redact.Set
	stop   context.CancelFunc
	once   sync.Once

	// Of Read, which one goroutine calls.
	out    process.Output
	rest   []byte // of the output, after the last line
	stderr []byte
}

// Write implements mcpclient.Program.
func (p *program) Write(ctx context.Context, line []byte) error {
	_, err := p.handle.Guest().Write(ctx, p.id, line)
	return err
}

// Read implements mcpclient.Program.
func (p *program) Read(most int) ([]byte, error) {
	for looked := 0; ; {
		if at := bytes.IndexByte(p.rest[looked:], '\n'); at >= 0 {
			line := bytes.Clone(p.rest[:looked+at])
			p.rest = append(p.rest[:0], p.rest[looked+at+1:]...)
			return line, nil
		}
		if looked = len(p.rest); looked > most {
			return nil, mcpclient.ErrLine
		}
		chunk, err := p.out.Next()
		if errors.Is(err, io.EOF) {
			return nil, p.ended()
		}
		if err != nil {
			return nil, err
		}
		switch chunk.Stream {
		case process.Stdout:
			p.rest = append(p.rest, chunk.Data...)
		case process.Stderr:
			p.stderr = append(p.stderr, chunk.Data...)
			p.stderr = p.stderr[max(0, len(p.stderr)-maxStderr):]
		}
	}
}

// ended says how the program has ended.
func (p *program) ended() error {
	exit := p.out.Exit()
	said := strings.TrimSpace(strings.ToValidUTF8(string(p.covers.Bytes(p.stderr)), "\uFFFD"))
	why := fmt.Sprintf("it ended with exit code %d", exit.Code)
	switch {
	case exit.OutOfMemory:
		why = "it was ended because the sandbox's memory was used up"
	case exit.Blocked != "":
		why = "it was ended by the permission " + exit.Blocked
	case exit.TimedOut:
		why = "it timed out"
	}
	if said != "" {
		why += ": " + said
	}
	return errors.New(why)
}

// Close implements mcpclient.Program.
func (p *program) Close() (err error) {
	p.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		if err = p.handle.Guest().Discard(ctx, p.id); fault.KindOf(err) == fault.NotFound {
			err = nil
		}
		p.stop()
		err = errors.Join(err, p.out.Close())
		p.handle.Close()
	})
	return err
}
