package rig

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Page is a page that is fetched again and again, with as little work as there can
// be: it shares the machine's processors with what it measures. Connections stay
// open, the request is made once, and of the answer the status and the length
// are looked at.
type Page struct {
	address, request string
	idle             chan *reader
}

type reader struct {
	net.Conn
	in *bufio.Reader
}

// Page is the first page of a host that the server has. It must be closed.
func (s *Server) Page(host string, clients int) *Page {
	return newPage(strings.TrimPrefix(s.URL, "http://"), host, clients)
}

func newPage(address, host string, clients int) *Page {
	return &Page{
		address: address,
		request: "GET / HTTP/1.1\r\nHost: " + host + "\r\nAccept: */*\r\n\r\n",
		idle:    make(chan *reader, clients),
	}
}

// Get fetches the page.
func (p *Page) Get(ctx context.Context) error {
	var c *reader
	select {
	case c = <-p.idle:
	default:
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
		if err != nil {
			return err
		}
		c = &reader{conn, bufio.NewReader(conn)}
	}
	if err := c.get(p.request); err != nil {
		return errors.Join(err, c.Close())
	}
	select {
	case p.idle <- c:
		return nil
	default:
		return c.Close()
	}
}

func (c *reader) get(request string) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.Contains(line, []byte(" 200 ")) {
			return fmt.Errorf("the answer is %q", line)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("the answer has no length")
	}
	_, err := c.in.Discard(length)
	return err
}

// Close closes the connections.
func (p *Page) Close() error {
	var errs []error
	for len(p.idle) > 0 {
		errs = append(errs, (<-p.idle).Close())
	}
	return errors.Join(errs...)
}

// Nginx is Debian's server of that name, with the libraries that images lack: where
// each file lies on this machine, by its name.
func (r *Rig) Nginx(ctx context.Context) (map[string]string, error) {
	dir, err := r.Temp("nginx")
	if err != nil {
		return nil, err
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", name, err, tail(string(out)))
		}
		return string(out), err
	}
	// Installed it would serve, too.
	if _, err := run("sh", "-c", "apt-get download nginx && dpkg-deb -x nginx_*.deb ."); err != nil {
		return nil, err
	}
	files := map[string]string{"nginx": filepath.Join(dir, "usr/sbin/nginx")}
	needs, err := run("ldd", files["nginx"])
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(needs) {
		name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if path, _, _ = strings.Cut(path, " "); ok && (strings.HasPrefix(name, "libcrypt.") || strings.HasPrefix(name, "libpcre2")) {
			files[name] = path
		}
	}
	return files, nil
}

// Put writes a file of this machine into a sandbox.
func (s *Server) Put(ctx context.Context, session, sandbox, path, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	at := s.URL + "/v1/sandboxes/" + sandbox + "/files?" + url.Values{"session": {session}, "path": {path}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, at, f)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	_, err = s.answer(req)
	return err
}
