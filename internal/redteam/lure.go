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

// lure is the attacker's server. It plays the model and MCP servers that agents call, the pages that
// they fetch, and a package index. It records each request.
type lure struct {
	addr    string // host and port, as the attacked server reaches it
	second  string // the same server at another port
	canary  string // the same server at an address that no setting allows; "" unless the lure is on loopback
	servers []*http.Server

	mu      sync.Mutex
	hits    []hit
	scripts map[string]*script
	shops   map[string]*shop
	packs   map[string][]byte // files of the package index, by name
}

// hit is a request that reached the lure.
type hit struct {
	Host, Path string // Host is the address that the attacked server connected to
	Header     http.Header
}

// errNoLure skips cases that need the lure.
var errNoLure = skip("not run: needs an address at which the attacked server reaches this program; pass it as --listen HOST:PORT")

// lureAddress returns the address where the lure listens: Options.Listen, or else loopback if the
// attacked server is on loopback. It returns "" if the lure cannot listen.
func lureAddress(o Options, base *url.URL) string {
	if o.Listen != "" {
		return o.Listen
	}
	if ip := net.ParseIP(base.Hostname()); base.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return "127.0.0.1:0"
	}
	return ""
}

// theLure returns the lure, and starts it on first use.
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

// serve listens at an address, and returns the address with the port.
func (l *lure) serve(ctx context.Context, at string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return "", err
	}
	addr := listener.Addr().String()
	s := &http.Server{ReadHeaderTimeout: rawTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.answer(w, r, addr) })}
	l.servers = append(l.servers, s)
	go func() { _ = s.Serve(listener) }() // returns when close closes the server
	return addr, nil
}

func (l *lure) close() error {
	var errs []error
	for _, s := range l.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// maxRequest is the number of bytes that the lure reads of a request body.
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
	case "to": // redirects to the URL in the query
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	case "simple", "files":
		l.index(w, r, first, strings.Trim(rest, "/"))
	default:
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<html><body><article><p>%s</p></article></body></html>", lureWords)
	}
}

// lureWords is the text of each page of the lure.
const lureWords = "the server fetched this page, which no case may show"

// reached returns the requests whose path starts with prefix.
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

// heard reports a request that carried a word in its headers, unless allowed permits that request.
func (l *lure) heard(word string, allowed func(hit) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hits {
		for name, values := range h.Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, word) }) && !allowed(h) {
				return found("the server sent the secret in the header %s to http://%s%s", name, h.Host, h.Path)
			}
		}
	}
	return nil
}
