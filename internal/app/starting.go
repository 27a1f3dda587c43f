package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// starting answers on the server's address until the server is open, so that clients and
// probes learn what it is doing instead of waiting for an answer.
type starting struct {
	ln   *handover
	http *http.Server
	done chan struct{}
	step func() string // returns the current step; "" before the first
}

// handover is a listener that a first server gives up without closing it.
type handover struct{ *net.TCPListener }

// Close ends Accept.
func (h *handover) Close() error { return h.SetDeadline(time.Unix(1, 0)) }

// stopTime bounds the wait for answers of starting to be sent.
const stopTime = time.Second

// answer begins to answer on a listener; secure adds TLS to it.
func answer(ln *net.TCPListener, secure func(net.Listener) net.Listener, step func() string, log *slog.Logger) *starting {
	s := &starting{ln: &handover{ln}, done: make(chan struct{}), step: step}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(secure(s.ln)) // stop ends it; if it fails otherwise, clients wait for the server
	}()
	return s
}

// ServeHTTP implements http.Handler.
func (s *starting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close") // the next request goes to the server
	if r.URL.Path == "/healthz" {
		_, _ = w.Write([]byte(`{"status":"ok"}`)) // fails if the client is gone
		return
	}
	doing := ""
	if step := s.step(); step != "" {
		doing = " (" + step + ")"
	}
	err := fault.New(fault.Unavailable, "the server is starting%s; nothing was done. Retry in a few seconds", doing)
	httpapi.WriteRefusal(w, err, func(_ int, body httpapi.ErrorResponse) any { return body })
}

// stop gives the listener up.
func (s *starting) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil { // a client that sends nothing holds it up
		_ = s.http.Close()
	}
	<-s.done
	return s.ln.SetDeadline(time.Time{})
}

// startingModule answers until Serve begins, or Open fails.
type startingModule struct {
	*process
	tls *tlsModule

	step    func() string // names the module that starts; set by the table
	answers *starting     // nil without Config.Listener, or once Serve has it
}

// Start implements module.Part.
func (m *startingModule) Start(_ context.Context, undo *module.Undo) error {
	if m.cfg.Listener == nil {
		return nil
	}
	secure := func(ln net.Listener) net.Listener { return ln }
	if m.tls.files != nil {
		secure = m.tls.files.Listen
	}
	m.answers = answer(m.cfg.Listener, secure, m.step, m.log)
	undo.Add(m.stop)
	return nil
}

// stop gives the listener up. It may be called again.
func (m *startingModule) stop(ctx context.Context) error {
	if m.answers == nil {
		return nil
	}
	first := m.answers
	m.answers = nil
	return first.stop(ctx)
}
