package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/session"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// Sessions finds the sessions with agents; session.Store implements it.
type Sessions interface {
	Get(ctx context.Context, t tenant.ID, id session.ID) (*session.Session, error)
}

// Files reads the files that tenants uploaded; *upload.Service implements it.
type Files interface {
	Read(ctx context.Context, t tenant.ID, id upload.ID) (io.ReadCloser, error)
}

// mounts puts what sessions are to have into their sandboxes.
type mounts struct {
	mu   sync.Mutex
	done map[runtime.ID]chan struct{} // guarded by mu; has a token while it is looked at, and is closed once all is there
}

// maxMounted is how many sandboxes are known to have all. More are looked at again.
const maxMounted = 10_000

// marker stands in a sandbox that has all its mounts.
const marker = ".atoll/mounts"

// mounted returns the mounts of the session that a call is of; nil for none.
func (c *call) mounted(ctx context.Context) ([]session.Mount, error) {
	id := session.ID(c.by.Session)
	if c.set.cfg.Sessions == nil || !id.Valid() {
		return nil, nil
	}
	s, err := c.set.cfg.Sessions.Get(ctx, c.by.Principal.Tenant.ID, id)
	if err != nil {
		return nil, err
	}
	return s.About.Mounts, nil
}

// spec is what a sandbox of the call's session is made from; nil for what any is.
func (c *call) spec(ctx context.Context) (*sandbox.Spec, error) {
	all, err := c.mounted(ctx)
	if err != nil {
		return nil, err
	}
	sub, err := session.SubPaths(all)
	if err != nil || sub == nil {
		return nil, err
	}
	return &sandbox.Spec{SubPaths: sub}, nil
}

// fill puts the mounts of the call's session into its sandbox, unless they are there.
func (c *call) fill(ctx context.Context, h sandbox.Handle) error {
	sb := h.Sandbox()
	if sb.Name != sandbox.Default || c.set.cfg.Sessions == nil || !session.ID(c.by.Session).Valid() {
		return nil
	}
	m := &c.set.mounts
	m.mu.Lock()
	if m.done == nil || len(m.done) >= maxMounted {
		m.done = map[runtime.ID]chan struct{}{}
	}
	turn := m.done[sb.ID]
	if turn == nil {
		turn = make(chan struct{}, 1)
		turn <- struct{}{}
		m.done[sb.ID] = turn
	}
	m.mu.Unlock()
	select {
	case _, first := <-turn:
		if !first {
			return nil
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.fillOnce(ctx, h); err != nil {
		turn <- struct{}{}
		return err
	}
	close(turn)
	return nil
}

func (c *call) fillOnce(ctx context.Context, h sandbox.Handle) error {
	all, err := c.mounted(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	if there, err := exists(ctx, h, marker); err != nil || there {
		return err
	}
	for i := range all {
		if err := c.mount(ctx, h, &all[i]); err != nil {
			f, ok := errors.AsType[*fault.Error](err)
			if !ok {
				return err
			}
			return fault.Wrap(f.Kind, err, fmt.Sprintf("mounts[%d], %s, cannot be made: %s", i, all[i].Path, f.Msg))
		}
	}
	_, err = h.Guest().Create(ctx, marker, file.CreateOptions{}, strings.NewReader(""))
	return err
}

func exists(ctx context.Context, h sandbox.Handle, at string) (bool, error) {
	_, err := h.Guest().Stat(ctx, at)
	if fault.KindOf(err) == fault.NotFound {
		return false, nil
	}
	return err == nil, err
}

// mount makes one mount, unless something is at its place: what the agent has made of it stays.
func (c *call) mount(ctx context.Context, h sandbox.Handle, m *session.Mount) error {
	if m.Type == session.MountVolume {
		return nil
	}
	if there, err := exists(ctx, h, m.Path); err != nil || there {
		return err
	}
	row := sandbox.Call{TraceID: execution.NewTraceID(), Source: "mount", Session: c.by.Session, Agent: c.by.Agent, Began: time.Now(), Command: []byte(cmp.Or(m.URL, m.Path)), Mounts: storage.Labels(h.Sandbox().Mounts)}
	row.SetSandbox(h.Sandbox())
	row.SetOrigin(c.by.By)
	var err error
	switch {
	case m.File != "":
		err = c.copy(ctx, h, m)
	case m.Type == session.MountFile:
		_, err = h.Guest().Create(ctx, m.Path, file.CreateOptions{}, bytes.NewReader(m.Content))
	default:
		err = clone(ctx, h, m, &row)
	}
	if row.Ended(ctx, err, true) {
		err = errors.Join(err, c.set.cfg.Pool.Record(context.WithoutCancel(ctx), c.by.Principal, row))
	}
	return err
}

// copy writes an uploaded file into a sandbox.
func (c *call) copy(ctx context.Context, h sandbox.Handle, m *session.Mount) error {
	if c.set.cfg.Files == nil {
		return fault.New(fault.Unavailable, "this server has no uploaded files")
	}
	body, err := c.set.cfg.Files.Read(ctx, c.by.Principal.Tenant.ID, m.File)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = h.Guest().Create(ctx, m.Path, file.CreateOptions{}, body)
	return err
}

// cloneTime bounds cloning a repository, and maxSaid what is passed on of what git says.
const (
	cloneTime = 5 * time.Minute
	maxSaid   = 2 << 10
)

// cloning clones a repository beside its place and moves it there: $1 is where, $2 the URL, $3
// what is checked out, $4 the variable that has the password. The user's configuration of git, and
// hooks, do not count: they may be files that the agent wrote.
const cloning = `set -e
command -v git >/dev/null || { echo "the sandbox's image has no git" >&2; exit 127; }
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null
part="$1.cloning-$$"
trap 'rm -rf "$part"' EXIT
mkdir -p -- "$(dirname -- "$1")"
set -- "$1" "$2" "$3" "$4" -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper=
if [ -n "$4" ]; then
	export ATOLL_MOUNT_TOKEN="$(printenv "$4")"
	set -- "$@" -c 'credential.helper=!f() { echo username=x-access-token; echo "password=$ATOLL_MOUNT_TOKEN"; }; f'
fi
at="$1" url="$2" ref="$3"
shift 4
git "$@" clone --quiet -- "$url" "$part"
[ -z "$ref" ] || git "$@" -C "$part" -c advice.detachedHead=false checkout --quiet "$ref" --
mv -T -- "$part" "$at"
`

// clone has git in the sandbox clone a repository, by the network that the sandbox has.
func clone(ctx context.Context, h sandbox.Handle, m *session.Mount, row *sandbox.Call) error {
	covers, err := h.Redactor(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cloneTime+overdue, errOverdue)
	defer cancel()
	at := path.Join(runtime.Home, m.Path)
	run, err := h.Guest().Run(ctx, process.Spec{
		Argv: []string{"/bin/sh", "-c", cloning, "clone", at, m.URL, m.Ref, m.Token}, Timeout: cloneTime, Lossless: true,
		Dir: "/", Env: []string{"HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent"}, Isolation: process.Isolated, Keep: []string{m.Token},
	})
	if err != nil {
		return err
	}
	defer run.Close()
	var said []byte
	for {
		chunk, err := run.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, h.Guest().Discard(context.WithoutCancel(ctx), run.Info().ID))
		}
		said = append(said, chunk.Data...)
		said = said[max(0, len(said)-maxSaid):]
	}
	exit := run.Exit()
	row.ExitCode = exit.Code
	switch why := strings.TrimSpace(text(covers.Bytes(said))); {
	case exit.TimedOut:
		row.Status, row.Reason = audit.Timeout, "it timed out"
		return fault.New(fault.Conflict, "cloning took longer than %s", cloneTime)
	case exit.Code != 0:
		row.Status, row.Reason = audit.Error, fmt.Sprintf("git exited with status %d", exit.Code)
		return fault.New(fault.Conflict, "git: %s", cmp.Or(why, fmt.Sprintf("exit status %d", exit.Code)))
	}
	return nil
}
