// Package preview serves previews: it finds the sandbox that a request's host names, has the request
// passed on to the server in it, and answers with a page if that fails.
package preview

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Config is what a Handler is made of. All but Log and Admit is required.
type Config struct {
	Previews  *preview.Previews
	Sandboxes preview.Sandboxes
	Forwarder preview.Forwarder
	// Admit refuses a request to a port that is open with all others of its sandbox; nil
	// where there are no such.
	Admit func(*http.Request, preview.Use) error
	Log   *slog.Logger
}

const (
	wakeTime   = 2 * time.Minute // for a sandbox to answer
	drainGrace = 3 * time.Second
)

// Handler serves previews. Close ends it.
type Handler struct {
	cfg Config

	life   context.Context // ends what Close did not wait for
	end    context.CancelFunc
	drain  sync.Once
	active sync.WaitGroup
}

// NewHandler returns a Handler.
func NewHandler(cfg Config) *Handler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	h := &Handler{cfg: cfg}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// Host reports whether a request's host is a preview's, or could be one: the API
// is not to be found there.
func (h *Handler) Host(host string) bool {
	_, ok := h.cfg.Previews.Base().Label(host)
	return ok
}

// ServeHTTP passes a request on to the sandbox that its host names.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.active.Add(1)
	defer h.active.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.life, cancel)()
	if r.Method == http.MethodConnect {
		h.page(w, r, http.StatusMethodNotAllowed, "A preview does not tunnel.")
		return
	}
	if !isRequest(r) {
		h.page(w, r, http.StatusBadRequest, "This is no request that HTTP allows.")
		return
	}
	label, _ := h.cfg.Previews.Base().Label(r.Host)
	if label == "" {
		h.unknown(w, r)
		return
	}
	record, release, err := h.cfg.Previews.Hold(ctx, label, cancel)
	if err != nil {
		h.refuse(ctx, w, r, err)
		return
	}
	defer release()
	if record.Every && h.cfg.Admit == nil {
		h.unknown(w, r)
		return
	}
	use, err := h.reach(ctx, record.Sandbox)
	if err != nil {
		h.refuse(ctx, w, r, err)
		return
	}
	if record.Every {
		if err := h.cfg.Admit(r, use); err != nil {
			use.Close()
			h.refuse(ctx, w, r, err)
			return
		}
	}
	to := preview.Target{Sandbox: record.Sandbox, Port: record.Port, Use: use}
	h.cfg.Forwarder.Forward(ctx, w, r, to, func(w http.ResponseWriter, err error) { h.failed(ctx, w, r, &to, err) })
}

// isRequest reports whether a request can be passed on by HTTP/1.1 as what it is: HTTP/2
// allows more.
func isRequest(r *http.Request) bool {
	printable := !strings.ContainsFunc(r.Header.Get("Upgrade"), func(c rune) bool { return c < ' ' || c > '~' })
	return httpguts.ValidHeaderFieldName(r.Method) && r.URL.Opaque == "" && printable // a method is a token, as a name is
}

// reach begins the use of a sandbox, for which it may have to wake.
func (h *Handler) reach(ctx context.Context, id runtime.ID) (preview.Use, error) {
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	return h.cfg.Sandboxes.Reach(ctx, id)
}

// refuse answers a request that leads to no sandbox.
func (h *Handler) refuse(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	switch kind := fault.KindOf(err); {
	case ctx.Err() != nil && h.life.Err() == nil: // by the client, or a revocation
		panic(http.ErrAbortHandler)
	case kind == fault.NotFound:
		h.unknown(w, r)
	case kind == fault.Conflict:
		h.page(w, r, http.StatusBadGateway, "The sandbox behind this preview is lost. Create it anew and open its port again.")
	case kind == fault.Unauthorized:
		h.page(w, r, http.StatusForbidden, "No valid key remains for the sandbox behind this preview. It opens again when the sandbox is used with a valid key.")
	case kind == fault.Forbidden:
		h.page(w, r, http.StatusForbidden, "The ports of this sandbox are open to requests with its token alone.")
	case kind == fault.Exhausted:
		w.Header().Set("Retry-After", "60")
		h.page(w, r, http.StatusServiceUnavailable, "The sandbox behind this preview cannot run now: a limit of the plan it runs under is reached, or its budget used up.")
	default:
		h.cfg.Log.WarnContext(r.Context(), "preview not served", "error", err)
		w.Header().Set("Retry-After", "1")
		h.page(w, r, http.StatusServiceUnavailable, "The sandbox behind this preview does not answer now. Try again in a few seconds.")
	}
}

// failed answers a request that the server in the sandbox did not.
func (h *Handler) failed(ctx context.Context, w http.ResponseWriter, r *http.Request, to *preview.Target, err error) {
	switch {
	case h.life.Err() != nil:
		w.Header().Set("Retry-After", "1")
		h.page(w, r, http.StatusServiceUnavailable, "The server is shutting down. Try again in a few seconds.")
	case ctx.Err() != nil:
		panic(http.ErrAbortHandler) // the client has gone
	case errors.Is(err, preview.ErrRefused):
		h.page(w, r, http.StatusBadGateway, h.nothing(ctx, to))
	case fault.KindOf(err) == fault.Conflict:
		w.Header().Set("Retry-After", "1")
		h.page(w, r, http.StatusServiceUnavailable, "The sandbox behind this preview does not answer now. Try again in a few seconds.")
	case errors.Is(err, preview.ErrBusy):
		w.Header().Set("Retry-After", "5")
		h.page(w, r, http.StatusServiceUnavailable, "Too many connections to this sandbox are open at once. Close some, then load this page again.")
	default:
		h.page(w, r, http.StatusBadGateway, "The server on port "+strconv.Itoa(int(to.Port))+" of this sandbox gave no answer that HTTP allows.")
	}
}

// Drain lets work in progress end, but not for long. Shutdown of an http.Server
// waits for what it cuts.
func (h *Handler) Drain() { h.drain.Do(func() { time.AfterFunc(drainGrace, h.end) }) }

// Close ends everything in progress, connections that were upgraded too, and waits
// for that.
func (h *Handler) Close() {
	h.end()
	h.active.Wait()
	h.cfg.Forwarder.Close()
}
