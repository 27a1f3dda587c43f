package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// maxPayload bounds a message: above the largest job (1 MiB of code, 4 MiB of stdin and
// files, arguments, three sets of variables, the secrets) and the largest result.
const (
	maxPayload = 8 << 20
	minPayload = 6 << 20 // what another server must allow
)

// inProcess is a NATS server in this process. It listens nowhere: only connections made
// through it reach it.
type inProcess struct {
	mu sync.Mutex
	s  *server.Server // guarded by mu; nil while there is none
}

// embed starts a NATS server in this process.
func embed(ctx context.Context, cfg Config) (*inProcess, error) {
	s, err := startEmbedded(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &inProcess{s: s}, nil
}

// InProcessConn implements nats.InProcessConnProvider.
func (e *inProcess) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.s == nil {
		return nil, errors.New("the embedded NATS server is being restarted")
	}
	return e.s.InProcessConn()
}

// runs reports whether the server is running.
func (e *inProcess) runs() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.s != nil
}

// stop ends the server. Connections look for the next one.
func (e *inProcess) stop() {
	e.mu.Lock()
	s := e.s
	e.s = nil
	e.mu.Unlock()
	if s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// restart starts another server on the same folder.
func (e *inProcess) restart(ctx context.Context, cfg Config) error {
	e.stop()
	s, err := startEmbedded(ctx, cfg)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.s = s
	return nil
}

func startEmbedded(ctx context.Context, cfg Config) (*server.Server, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{
		ServerName: cfg.Name,
		DontListen: true,
		NoSigs:     true,
		JetStream:  true,
		StoreDir:   cfg.Dir,
		MaxPayload: maxPayload,
		// What has not been delivered to one connection; beyond it the server cuts
		// the connection, which would be this process's own.
		MaxPending: 256 << 20,
		// JetStream's own defaults follow the machine; the streams have bounds.
		JetStreamMaxStore:     cfg.MaxBytes + resultsBytes + turnsBytes + 1<<30,
		JetStreamMaxMemory:    256 << 20,
		DisableShortFirstPing: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make a NATS server: %w", err)
	}
	s.SetLoggerV2(serverLog{cfg.Log}, false, false, false)
	s.Start()
	wait := 30 * time.Second // it reads the whole store folder first
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	if !s.ReadyForConnections(wait) || !s.JetStreamEnabled() {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, errors.New("the NATS server in this process did not start; its log says why")
	}
	return s, nil
}

// serverLog hands the server's log lines on. Its notices are about itself.
type serverLog struct{ log *slog.Logger }

func (l serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "nats", "detail", fmt.Sprintf(format, v...))
}

func (l serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l serverLog) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l serverLog) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l serverLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l serverLog) Debugf(string, ...any)           {}
func (l serverLog) Tracef(string, ...any)           {}
