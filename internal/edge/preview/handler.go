// Package preview serves previews: it passes requests of browsers on to servers in
// sandboxes, over connections to their ports, so that neither a sandbox's network nor a
// port of this machine is involved.
package preview

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// Sandboxes are where previews lead.
type Sandboxes interface {
	// Reach begins the use of a sandbox, and wakes it if it sleeps; a NotFound fault
	// if there is none, Unauthorized if no valid key for it remains.
	Reach(ctx context.Context, id runtime.ID) (Use, error)
}

// Use is the use of a sandbox, until it is closed.
type Use interface {
	// Connect connects to a port of its loopback interface. Where something may be about
	// to listen on it, that may take so long.
	Connect(ctx context.Context, port uint16, wait time.Duration) (net.Conn, error)
	// Listening returns where something listens, by port.
	Listening(ctx context.Context) ([]netip.AddrPort, error)
	// Carried counts bytes that came out of the sandbox.
	Carried(bytes int64)
	// Done is closed when the sandbox has ended or fallen asleep. All uses until then have
	// the same channel, later ones another.
	Done() <-chan struct{}
	Close()
}

// ErrRefused says that nothing listens on a port.
var ErrRefused = errors.New("nothing listens on this port")

// Config is what a Handler is made of. All but Log and Admit is required.
type Config struct {
	Previews  *preview.Previews
	Sandboxes Sandboxes
	// Client is the address that a request came from, through proxies that are
	// trusted.
	Client func(*http.Request) string
	// Admit refuses a request to a port that is open with all others of its sandbox; nil
	// where there are no such.
	Admit func(*http.Request, Use) error
	// Key reports whether a word of a header has the look of a key or token of the API.
	Key func(token string) bool
	Log *slog.Logger
}

const (
	wakeTime   = 2 * time.Minute  // for a sandbox to answer
	listenTime = 10 * time.Second // for something to listen that may be about to
	drainGrace = 3 * time.Second
)

// Handler serves previews. Close ends it.
type Handler struct {
	cfg   Config
	pool  pool
	proxy *httputil.ReverseProxy

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
	h := &Handler{cfg: cfg, pool: pool{places: make(map[instance]*place)}}
	h.proxy = h.newProxy()
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
	out := &answer{ResponseWriter: w, conn: http.NewResponseController(w), ctx: ctx}
	defer out.end()
	if r.Method == http.MethodConnect {
		h.page(out, r, http.StatusMethodNotAllowed, "A preview does not tunnel.")
		return
	}
	if !isRequest(r) {
		h.page(out, r, http.StatusBadRequest, "This is no request that HTTP allows.")
		return
	}
	label, _ := h.cfg.Previews.Base().Label(r.Host)
	if label == "" {
		h.unknown(out, r)
		return
	}
	record, release, err := h.cfg.Previews.Hold(ctx, label, cancel)
	if err != nil {
		h.refuse(out, r, err)
		return
	}
	defer release()
	if record.Every && h.cfg.Admit == nil {
		h.unknown(out, r)
		return
	}
	use, err := h.reach(ctx, record.Sandbox)
	if err != nil {
		h.refuse(out, r, err)
		return
	}
	defer use.Close()
	if record.Every {
		if err := h.cfg.Admit(r, use); err != nil {
			h.refuse(out, r, err)
			return
		}
	}
	defer func() { use.Carried(out.written.Load()) }()
	v := &visit{record: record, use: use, out: out, ctx: ctx, until: time.Now().Add(listenTime)}
	if v.place, err = h.pool.enter(record.Sandbox, use.Done()); err != nil {
		h.failed(out, r, v, err)
		return
	}
	defer v.place.leave()
	request := r
	r = r.WithContext(v.context())
	if r.ContentLength != 0 {
		_ = out.conn.EnableFullDuplex() // HTTP/2 needs no leave
		v.body = newRequestBody(ctx, request, out.conn)
		r.Body = v.body
		defer v.body.end(out)
	}
	h.proxy.ServeHTTP(out, r)
}

// reach begins the use of a sandbox, for which it may have to wake.
func (h *Handler) reach(ctx context.Context, id runtime.ID) (Use, error) {
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	return h.cfg.Sandboxes.Reach(ctx, id)
}

// refuse answers a request that leads to no sandbox.
func (h *Handler) refuse(w *answer, r *http.Request, err error) {
	switch kind := fault.KindOf(err); {
	case w.ctx.Err() != nil && h.life.Err() == nil: // by the client, or a revocation
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
func (h *Handler) failed(w *answer, r *http.Request, v *visit, err error) {
	to := v.record
	h.cfg.Log.DebugContext(r.Context(), "preview failed", "sandbox_id", string(to.Sandbox), "port", int(to.Port), "error", err)
	port := strconv.Itoa(int(to.Port))
	switch {
	case w.left: // nothing can be said on it any more
	case h.life.Err() != nil:
		w.Header().Set("Retry-After", "1")
		h.page(w, r, http.StatusServiceUnavailable, "The server is shutting down. Try again in a few seconds.")
	case w.ctx.Err() != nil:
		panic(http.ErrAbortHandler) // the client has gone
	case errors.Is(err, ErrRefused):
		h.page(w, r, http.StatusBadGateway, h.nothing(w.ctx, v))
	case fault.KindOf(err) == fault.Conflict:
		w.Header().Set("Retry-After", "1")
		h.page(w, r, http.StatusServiceUnavailable, "The sandbox behind this preview does not answer now. Try again in a few seconds.")
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "5")
		h.page(w, r, http.StatusServiceUnavailable, "Too many connections to this sandbox are open at once. Close some, then load this page again.")
	default:
		h.page(w, r, http.StatusBadGateway, "The server on port "+port+" of this sandbox gave no answer that HTTP allows.")
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
	h.pool.close()
}
