package redteam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// lure is a server of the attacker's: the model that agents ask, the MCP servers that they
// call, pages that they fetch, and an index of packages. It records each request.
type lure struct {
	addr    string // host and port, as the attacked server reaches it
	second  string // the same server at another port
	canary  string // the same server at an address that no setting opens; "" unless the lure is on loopback
	servers []*http.Server

	mu      sync.Mutex
	hits    []hit
	scripts map[string]*script
	shops   map[string]*shop
	packs   map[string][]byte // of the index, by file name
}

// hit is a request that reached the lure.
type hit struct {
	Host, Path string // the host is the address that was connected to
	Header     http.Header
}

// errNoLure says why cases that need the lure do not run.
var errNoLure = skip("not run: needs an address at which the attacked server reaches this program; pass it as --listen HOST:PORT")

// lureAddress is where the lure listens: as the caller said, else on loopback if the server is there.
func lureAddress(o Options, base *url.URL) string {
	if o.Listen != "" {
		return o.Listen
	}
	if ip := net.ParseIP(base.Hostname()); base.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return "127.0.0.1:0"
	}
	return ""
}

// theLure starts the lure.
func (a *arena) theLure(ctx context.Context) (*lure, error) {
	return a.lure.get(ctx, func(ctx context.Context) (*lure, error) {
		at := lureAddress(a.opts, a.base)
		if at == "" {
			return nil, errNoLure
		}
		host, _, err := net.SplitHostPort(at)
		if err != nil {
			return nil, fmt.Errorf("--listen: %w", err)
		}
		l := &lure{scripts: map[string]*script{}, shops: map[string]*shop{}, packs: map[string][]byte{}}
		if l.addr, err = l.serve(ctx, at); err == nil {
			l.second, err = l.serve(ctx, net.JoinHostPort(host, "0"))
		}
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsLoopback() {
			l.canary, _ = l.serve(ctx, "127.0.0.3:0") // not every system has that address
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the attacker's server: %w", err), l.close())
		}
		a.later(func(context.Context) error { return l.close() })
		return l, nil
	})
}

// serve begins to listen at an address, and returns it with its port.
func (l *lure) serve(ctx context.Context, at string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return "", err
	}
	addr := listener.Addr().String()
	s := &http.Server{ReadHeaderTimeout: rawTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.answer(w, r, addr) })}
	l.servers = append(l.servers, s)
	go func() { _ = s.Serve(listener) }() // ends with close
	return addr, nil
}

func (l *lure) close() error {
	var errs []error
	for _, s := range l.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// maxRequest bounds what the lure reads of a request.
const maxRequest = 32 << 20

func (l *lure) answer(w http.ResponseWriter, r *http.Request, at string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	l.mu.Lock()
	l.hits = append(l.hits, hit{at, r.URL.Path, r.Header.Clone()})
	l.mu.Unlock()
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "model":
		l.model(w, r, body)
	case "mcp":
		l.mcp(w, r, rest, body)
	case "to": // wherever the query says
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	case "simple", "files":
		l.index(w, r, first, strings.Trim(rest, "/"))
	default:
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<html><body><article><p>%s</p></article></body></html>", lureWords)
	}
}

// lureWords are on each page of the lure.
const lureWords = "the lure was read, which is what an attacker wants"

// reached returns the requests below a path.
func (l *lure) reached(prefix string) (all []hit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hits {
		if strings.HasPrefix(h.Path, prefix) {
			all = append(all, h)
		}
	}
	return all
}

// heard says whether a request to the lure has a word in its headers, and where it went.
func (l *lure) heard(word string, allowed func(hit) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hits {
		for name, values := range h.Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, word) }) && !allowed(h) {
				return found("the header %s of a request to http://%s%s has the secret", name, h.Host, h.Path)
			}
		}
	}
	return nil
}
