package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river/riverdriver"
)

// driver is River's driver for database/sql with another way of being told
// about new jobs: a bell in this process. LISTEN needs a connection of its own
// and SQLite has nothing of the kind; and NOTIFY makes transactions wait for
// each other when they commit.
type driver struct {
	riverdriver.Driver[*sql.Tx]
	bell *bell
}

func (driver) SupportsListener() bool     { return true }
func (driver) SupportsListenNotify() bool { return false }

func (d driver) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener { return d.bell }

// insertTopic is where River listens for new jobs.
const insertTopic = "river_insert"

// bell is a Listener that hears its own ring.
type bell struct {
	rung chan struct{}

	mu     sync.Mutex
	timers map[*time.Timer]struct{} // nil once stopped
}

var _ riverdriver.Listener = (*bell)(nil)

func newBell() *bell {
	return &bell{rung: make(chan struct{}, 1), timers: map[*time.Timer]struct{}{}}
}

// ring has the webhook queue looked into. Rings that no worker has heard yet
// count as one.
func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// ringAfter rings when a job is due.
func (b *bell) ringAfter(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timers == nil {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		b.mu.Lock()
		delete(b.timers, t)
		b.mu.Unlock()
		b.ring()
	})
	b.timers[t] = struct{}{}
}

func (b *bell) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.timers {
		t.Stop()
	}
	b.timers = nil
}

// WaitForNotification implements riverdriver.Listener.
func (b *bell) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	select {
	case <-b.rung:
		payload, err := json.Marshal(map[string]string{"queue": webhookQueue})
		return &riverdriver.Notification{Topic: insertTopic, Payload: string(payload)}, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *bell) Close(context.Context) error            { return nil }
func (b *bell) Connect(context.Context) error          { return nil }
func (b *bell) Listen(context.Context, string) error   { return nil }
func (b *bell) Ping(context.Context) error             { return nil }
func (b *bell) Schema() string                         { return "" }
func (b *bell) SetAfterConnectExec(string)             {}
func (b *bell) Unlisten(context.Context, string) error { return nil }

// quiet passes on River's warnings and errors only, and once the client stops, not
// that what was under way was cancelled by it.
type quiet struct {
	slog.Handler
	stopping *atomic.Bool
}

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	cancelled := false
	r.Attrs(func(a slog.Attr) bool {
		cancelled = strings.HasSuffix(a.Value.String(), context.Canceled.Error())
		return !cancelled
	})
	if cancelled && q.stopping.Load() {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(a), q.stopping}
}
func (q quiet) WithGroup(g string) slog.Handler { return quiet{q.Handler.WithGroup(g), q.stopping} }
