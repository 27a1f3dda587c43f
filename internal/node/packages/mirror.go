package packages

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/outbound"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// Config of a Mirror. All of it is required, but for Allow, and for Security and
// Hosts where Kind is not Apt.
type Config struct {
	Kind     Kind
	Upstream string // the operator's mirror
	Base     string // URL of the Mirror itself, as sandboxes reach it
	Allowed  List
	Allow    outbound.List // where the upstream's links and redirects may lead beside public addresses
	Security string        // the operator's mirror of the archive of security updates
	Hosts    []string      // public hosts of the archive, in whose place the Mirror answers
	Trouble  *Trouble      // records certificates that the mirror does not trust; may be nil
	Log      *slog.Logger
}

// Mirror answers the requests of pip, npm or apt. It keeps nothing.
type Mirror struct {
	cfg      Config
	upstream *url.URL
	trees    map[string]*url.URL // of Debian's archive, where Kind is Apt
	client   *http.Client
	key      []byte // signs links, so that no other can be asked for
	server   *http.Server
	conns    chan net.Conn
	done     chan struct{}
	once     sync.Once
	served   chan struct{} // closed when the server has ended
}

// fetchTime bounds what the upstream may take until it begins to answer.
const fetchTime = time.Minute

// New starts a Mirror, which Close ends.
func New(cfg Config) (*Mirror, error) {
	u, err := upstreamURL(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	origins := []*url.URL{u}
	var trees map[string]*url.URL
	if cfg.Kind == Apt {
		security, err := upstreamURL(cfg.Security)
		if err != nil {
			return nil, fmt.Errorf("apt_security %w", err)
		}
		trees = map[string]*url.URL{debianTree: u, securityTree: security}
		origins = append(origins, security)
	}
	m := &Mirror{
		cfg: cfg, upstream: u, trees: trees, client: &http.Client{Transport: newTransport(origins, cfg.Allow)}, key: make([]byte, 32),
		conns: make(chan net.Conn), done: make(chan struct{}), served: make(chan struct{}),
	}
	rand.Read(m.key)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /file/{mac}/{url}/{name}", m.file)
	switch cfg.Kind {
	case Pip:
		mux.HandleFunc("GET /simple/{name}/{$}", m.pipPage)
	case NPM:
		mux.HandleFunc("GET /{name}", m.npmPage)
		mux.HandleFunc("GET /{scope}/{name}", m.npmPage)
	}
	var handler http.Handler = mux
	if cfg.Kind == Apt {
		handler = http.HandlerFunc(m.archive) // a mux would redirect paths that it does not like
	}
	m.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 15 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // the sandbox's mistakes
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed || state == http.StateHijacked {
				c.(*conn).end()
			}
		},
	}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(listener{m})
	}()
	return m, nil
}

// upstreamURL reads the URL of an operator's mirror.
func upstreamURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an http or https URL without a query")
	}
	return u, nil
}

// Name is the upstream's host.
func (m *Mirror) Name() string { return m.upstream.Hostname() }

// Variables are those by which pip, npm and apt find the Mirror.
func (m *Mirror) Variables() map[string]string {
	switch m.cfg.Kind {
	case Apt:
		return map[string]string{"APT_CONFIG": path.Join(runtime.GuestDir, wire.AptFile)}
	case NPM:
		return map[string]string{"npm_config_registry": m.cfg.Base + "/", "npm_config_audit": "false"}
	}
	u, _ := url.Parse(m.cfg.Base) // ours
	index := m.cfg.Base + "/simple"
	return map[string]string{
		"PIP_INDEX_URL": index, "PIP_TRUSTED_HOST": u.Hostname(), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_DEFAULT_INDEX": index,
	}
}

// conn is a connection that Serve waits for.
type conn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *conn) end() { c.once.Do(func() { close(c.closed) }) }

// Serve answers a connection until it is closed.
func (m *Mirror) Serve(c net.Conn) {
	own := &conn{Conn: c, closed: make(chan struct{})}
	select {
	case m.conns <- own:
		<-own.closed
	case <-m.done:
		c.Close()
	}
}

// listener gives a Mirror's server the connections that Serve is called with.
type listener struct{ *Mirror }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The Mirror's Close ends it.
func (listener) Close() error { return nil }

// Addr implements net.Listener.
func (listener) Addr() net.Addr { return &net.TCPAddr{} }

// Close ends all connections.
func (m *Mirror) Close() error {
	var err error
	m.once.Do(func() {
		close(m.done)
		err = m.server.Close()
		<-m.served
		m.client.CloseIdleConnections()
	})
	return err
}

// link is where a file of the upstream is to be had here. Its name stays at the
// end, where clients read it. The upstream's password is left out, because the
// sandbox can read the link.
func (m *Mirror) link(file *url.URL) string {
	plain := *file
	plain.Fragment, plain.RawFragment = "", ""
	if origin(file) == origin(m.upstream) {
		plain.User = nil
	}
	text := plain.String()
	out := m.cfg.Base + "/file/" + m.sign(text) + "/" + base64.RawURLEncoding.EncodeToString([]byte(text)) + "/" + url.PathEscape(path.Base(plain.Path))
	if file.Fragment != "" {
		out += "#" + file.EscapedFragment()
	}
	return out
}

func (m *Mirror) sign(text string) string {
	h := hmac.New(sha256.New, m.key)
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// metadata is what pip adds to the name of a file to ask for its metadata alone.
const metadata = ".metadata"

// file passes on a file that a page has linked to.
func (m *Mirror) file(w http.ResponseWriter, r *http.Request) {
	text, err := base64.RawURLEncoding.DecodeString(r.PathValue("url"))
	if err != nil || !hmac.Equal([]byte(m.sign(string(text))), []byte(r.PathValue("mac"))) {
		http.Error(w, "no page has linked to this file", http.StatusForbidden)
		return
	}
	u, err := url.Parse(string(text))
	if err != nil {
		http.Error(w, "no file", http.StatusNotFound)
		return
	}
	if origin(u) == origin(m.upstream) {
		u.User = m.upstream.User
	}
	if name := path.Base(u.Path); m.cfg.Kind == Pip && r.PathValue("name") == name+metadata {
		u.Path += metadata
		u.RawPath = ""
	}
	m.pass(w, r, u)
}

// pass answers with a file of the upstream's.
func (m *Mirror) pass(w http.ResponseWriter, r *http.Request, u *url.URL) {
	res, err := m.fetch(r, u, "")
	if err != nil {
		m.fail(w, err)
		return
	}
	defer res.Body.Close()
	for _, h := range []string{"Accept-Ranges", "Content-Type", "Content-Length", "Content-Encoding", "Content-Range", "ETag", "Last-Modified", "Cache-Control"} {
		if v := res.Header.Get(h); v != "" {
			w.Header().Set(h, v)
		}
	}
	w.WriteHeader(res.StatusCode)
	_, _ = io.Copy(w, res.Body) // a client that is gone
}

// fetch asks the upstream, and passes on of the request what concerns the answer
// alone.
func (m *Mirror) fetch(r *http.Request, u *url.URL, accept string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "atoll")
	if accept != "" {
		req.Header.Set("Accept", accept)
	} else {
		conditions(req.Header, r.Header)
	}
	return m.client.Do(req)
}

// byteRange is one range of bytes. Servers answer what they do not understand with
// the whole file, so that no other form need pass.
var byteRange = regexp.MustCompile(`^bytes=([0-9]{1,19}-[0-9]{0,19}|-[0-9]{1,19})$`)

// conditions copies what a request says of the part and the version of a file that
// it wants. Times are read and written anew: no other text of a sandbox passes.
func conditions(to, from http.Header) {
	if v := from.Get("Range"); byteRange.MatchString(v) {
		to.Set("Range", v)
	}
	for _, h := range []string{"If-Modified-Since", "If-Range"} {
		if t, err := http.ParseTime(from.Get(h)); err == nil {
			to.Set(h, t.UTC().Format(http.TimeFormat))
		}
	}
}

// maxPage bounds a package's page.
const maxPage = 128 << 20

// page returns the upstream's page of a package, and where it was found.
func (m *Mirror) page(w http.ResponseWriter, r *http.Request, name, accept string, u *url.URL) (body []byte, at *url.URL, kind string, ok bool) {
	if !m.cfg.Allowed.allows(m.cfg.Kind, name) {
		http.Error(w, fmt.Sprintf("%s is not among the packages that this server allows", name), http.StatusForbidden)
		return nil, nil, "", false
	}
	res, err := m.fetch(r, u, accept)
	if err == nil {
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			w.WriteHeader(res.StatusCode)
			return nil, nil, "", false
		}
		body, err = io.ReadAll(io.LimitReader(res.Body, maxPage+1))
		if err == nil && len(body) > maxPage {
			err = errors.New("the page is too long")
		}
	}
	if err != nil {
		m.fail(w, err)
		return nil, nil, "", false
	}
	return body, res.Request.URL, res.Header.Get("Content-Type"), true
}

func (m *Mirror) fail(w http.ResponseWriter, err error) {
	if refused(err) {
		m.cfg.Log.Warn("a package mirror resolves to a forbidden address", "kind", string(m.cfg.Kind), "error", err)
		http.Error(w, "the mirror leads to an address that this server does not connect to", http.StatusForbidden)
		return
	}
	answer := "the mirror does not answer"
	if why, ok := outbound.Untrusted(err, outbound.System); ok {
		answer = "the mirror cannot be reached: " + why
		m.cfg.Trouble.note("the server's mirror of " + string(m.cfg.Kind) + " cannot be reached: " + why)
	}
	m.cfg.Log.Warn("a package mirror does not respond", "kind", string(m.cfg.Kind), "error", err)
	http.Error(w, answer, http.StatusBadGateway)
}
