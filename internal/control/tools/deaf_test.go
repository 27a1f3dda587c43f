package tools

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/directory"
	"github.com/atoll-run/atoll/internal/control/executors"
	"github.com/atoll-run/atoll/internal/core/audit"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
	"github.com/atoll-run/atoll/internal/guest/proto"
	"github.com/atoll-run/atoll/internal/infra/store"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
	"github.com/atoll-run/atoll/internal/node/contexts"
	"github.com/atoll-run/atoll/internal/node/disk"
	"github.com/atoll-run/atoll/internal/node/sandboxes"
)

// lies makes sandboxes whose guest daemon says what a test wants. Nothing else of an
// engine is asked for.
type lies struct {
	sandboxes.Engine
	live lyingSandbox
}

func (l lies) Admit(sandboxes.Recipe) error                                     { return nil }
func (l lies) Create(context.Context, sandboxes.Recipe) (sandboxes.Live, error) { return l.live, nil }

type lyingSandbox struct {
	sandboxes.Live
	guest *daemonclient.Client
	done  chan struct{}
}

func (l lyingSandbox) Guest(context.Context) (*daemonclient.Client, error) { return l.guest, nil }
func (l lyingSandbox) Done() <-chan struct{}                               { return l.done }
func (l lyingSandbox) Environ(map[string]string) []string                  { return nil }
func (l lyingSandbox) SetNetwork(runtime.NetworkPolicy, []execution.BoundSecret) error {
	return nil
}

// HostPath has nothing on the disk: it is the guest that is asked.
func (l lyingSandbox) HostPath(string) (disk.Place, bool) { return disk.Place{}, false }

type policy execution.Policy

func (p policy) Policy(*tenant.Principal) execution.Policy { return execution.Policy(p) }

// lied is the tools over sandboxes that answer requests as answer says, who calls
// them, and the records.
func lied(t *testing.T, p daemonclient.Timeouts, answer func(*proto.Request) *proto.Reply) (*Set, *Caller, *store.DB) {
	t.Helper()
	guest := clienttest.LieTo(t, p, answer)
	db := storetest.SQLite(t)
	node := sandboxes.New(sandboxes.Config{
		Images: plain{}, Contexts: contexts.New(), Records: executors.Records{Store: db.Sandboxes()}, Engine: lies{live: lyingSandbox{guest: guest, done: make(chan struct{})}},
		AdmitDisk: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	by := &Caller{Session: "s", TraceID: execution.NewTraceID(), Principal: &tenant.Principal{
		Tenant: tenant.Tenant{ID: "ten_a", AuditDays: 30}, Environment: tenant.Environment{ID: "env_a"}, Key: tenant.Key{ID: "key_a"},
	}}
	return NewSet(SetConfig{Pool: directory.New(directory.Config{Local: node, Store: db.Sandboxes(), Refusals: db.Audit()}), Policies: policy{MaxTimeout: time.Minute}}), by, db
}

// plain has images without packages alone.
type plain struct{ sandboxes.Images }

func (plain) Named(_ context.Context, image string) (string, error) { return image, nil }

// TestDeafSandboxes: a sandbox that does not end a command keeps no caller waiting
// for much longer than the command's time.
func TestDeafSandboxes(t *testing.T) {
	for name, answer := range map[string]func(q *proto.Request) *proto.Reply{
		"no answer": func(*proto.Request) *proto.Reply { return nil },
		"no end": func(q *proto.Request) *proto.Reply {
			return &proto.Reply{Process: &proto.Process{ID: "x", PID: 2}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			set, by, db := lied(t, daemonclient.DefaultTimeouts, answer)
			set.overdue = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := set.Call(ctx, "shell", by, []byte(`{"command": "true", "timeout_ms": 100}`))
			if err == nil || fault.KindOf(err) != fault.Conflict || ctx.Err() != nil {
				t.Errorf("got %v", err)
			}
			rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: "ten_a", TraceID: by.TraceID, Limit: 2})
			if err != nil || len(rows) != 1 || rows[0].ExitStatus != audit.Error || rows[0].FailureReason != errOverdue.Msg {
				t.Errorf("the trail has %+v, %v", rows, err)
			}
		})
	}
}

// TestSilentSandboxes: nor does any other tool wait for one that does not answer.
func TestSilentSandboxes(t *testing.T) {
	file := &proto.Reply{File: &proto.File{Path: []byte("x"), Kind: "file", Size: 5}}
	silences := map[string]func(q *proto.Request) *proto.Reply{
		"at all": func(*proto.Request) *proto.Reply { return nil },
		"after the first word": func(q *proto.Request) *proto.Reply {
			switch {
			case q.Read != nil, q.Stat != nil:
				return file
			case q.Pack != nil:
				return &proto.Reply{}
			}
			return nil
		},
	}
	for name, input := range map[string]string{
		"read_file":  `{"path": "x"}`,
		"write_file": `{"path": "x", "content": "y"}`,
		"glob":       `{"pattern": "*"}`,
		"transfer":   `{"from_sandbox": "default", "from_path": "x", "to_sandbox": "default", "to_path": "y"}`,
	} {
		for when, answer := range silences {
			t.Run(name+" "+when, func(t *testing.T) {
				set, by, db := lied(t, daemonclient.Timeouts{Silence: 100 * time.Millisecond, Work: 100 * time.Millisecond, Pulse: time.Hour}, answer)
				if _, _, err := set.cfg.Pool.Ensure(t.Context(), by.Principal, by.Session, "default", nil); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, err := set.Call(ctx, name, by, []byte(input))
				if !errors.Is(err, daemonclient.ErrSilent) || fault.KindOf(err) != fault.Conflict || ctx.Err() != nil {
					t.Errorf("got %v", err)
				}
				rows, _, err := db.Audit().List(ctx, audit.Filter{Tenant: "ten_a", TraceID: by.TraceID, Limit: 2})
				if err != nil || len(rows) != 1 || rows[0].ExitStatus != audit.Error || !strings.Contains(rows[0].FailureReason, "does not respond") {
					t.Errorf("the trail has %+v, %v", rows, err)
				}
			})
		}
	}
}
