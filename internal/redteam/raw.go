package redteam

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dial connects to the server without speaking to it.
func dial(ctx context.Context, base *url.URL) (net.Conn, error) {
	at := base.Host
	if base.Port() == "" {
		at = net.JoinHostPort(base.Hostname(), map[string]string{"http": "80", "https": "443"}[base.Scheme])
	}
	if base.Scheme == "https" {
		d := tls.Dialer{Config: &tls.Config{ServerName: base.Hostname(), NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}}
		return d.DialContext(ctx, "tcp", at)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at)
}

// rawTime bounds a conversation of bytes.
const rawTime = 15 * time.Second

// raw sends bytes and reads one answer. A connection that is closed without one is an
// answer of status 0.
func raw(ctx context.Context, base *url.URL, bytes string) (*answer, error) {
	all, err := rawAll(ctx, base, bytes, 1)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return &answer{Header: http.Header{}}, nil
	}
	return all[0], nil
}

// rawAll sends bytes and reads up to most answers, until the server closes.
func rawAll(ctx context.Context, base *url.URL, bytes string, most int) (all []*answer, err error) {
	conn, err := dial(ctx, base)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(rawTime)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, bytes); err != nil {
		return nil, nil //nolint:nilerr // the server closed on what it had read: that is its answer
	}
	in := bufio.NewReader(conn)
	for range most {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return all, ctx.Err()
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		_ = res.Body.Close() // of memory
		all = append(all, &answer{Status: res.StatusCode, Header: res.Header, Body: body})
		if err != nil || res.Close {
			return all, ctx.Err()
		}
	}
	return all, nil
}

// hostOf is the host and port of a URL.
func hostOf(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}
