package e2b_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	domain "github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/compat/e2b"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// one has one sandbox, in which a program with the pid 7 reads.
type one struct {
	sandboxes.Sandboxes
	input     chan string     // what the program reads
	events    chan file.Event // of a watch
	using     atomic.Int32    // handles
	destroyed atomic.Value    // the name
}

func (*one) Get(context.Context, *tenant.Principal, string, string) (*domain.Sandbox, error) {
	return &domain.Sandbox{ID: id, State: domain.Running}, nil
}

func (o *one) Use(context.Context, *tenant.Principal, string, string) (domain.Handle, error) {
	o.using.Add(1)
	return handle{of: o}, nil
}

func (o *one) Sleep(context.Context, *tenant.Principal, string, string) (*domain.Sandbox, error) {
	if o.using.Load() > 0 {
		return nil, fault.New(fault.Conflict, "the sandbox is in use")
	}
	return &domain.Sandbox{ID: id, State: domain.Sleeping}, nil
}

func (*one) Fork(context.Context, *tenant.Principal, string, string, int) ([]*domain.Sandbox, error) {
	return []*domain.Sandbox{{ID: "sb-00000000000000ff", State: domain.Running}}, nil
}

func (*one) Update(context.Context, *tenant.Principal, string, string, domain.Change) (*domain.Sandbox, error) {
	return nil, fault.New(fault.Unavailable, "not now")
}

func (o *one) Destroy(_ context.Context, _ *tenant.Principal, _, name string) error {
	o.destroyed.Store(name)
	return nil
}

type handle struct {
	domain.Handle
	of *one
}

func (handle) Sandbox() *domain.Sandbox      { return &domain.Sandbox{ID: id, State: domain.Running} }
func (h handle) Guest() domain.Guest         { return guest{of: h.of} }
func (handle) Stopped(context.Context) error { return nil }
func (h handle) Close()                      { h.of.using.Add(-1) }

type guest struct {
	domain.Guest
	of *one
}

func (guest) Processes(context.Context) ([]process.Info, error) {
	return []process.Info{{ID: "p-0123456789abcdef", PID: 7}}, nil
}

func (g guest) Write(_ context.Context, _ process.ID, data []byte) (int, error) {
	g.of.input <- string(data)
	return len(data), nil
}

func (guest) Stat(_ context.Context, path string) (file.Info, error) {
	return file.Info{Path: path, Kind: file.Folder}, nil
}

func (guest) Create(_ context.Context, _ string, _ file.CreateOptions, content io.Reader) (int64, error) {
	return io.Copy(io.Discard, content)
}

func (g guest) Watch(ctx context.Context, _ string, _ bool) (file.Events, error) {
	return &events{ctx, g.of.events}, nil
}

type events struct {
	ctx context.Context
	of  chan file.Event
}

func (e *events) Next() (file.Event, error) {
	select {
	case event := <-e.of:
		return event, nil
	case <-e.ctx.Done():
		return file.Event{}, e.ctx.Err()
	}
}

func (*events) Close() error { return nil }

// use returns a server with one sandbox, and an access token for it.
func use(t *testing.T, change ...func(*httpapitest.Setup)) (o *one, s *httpapitest.Server, token string) {
	t.Helper()
	o = &one{input: make(chan string, 1), events: make(chan file.Event)}
	s, handlers := serve(t, o, change...)
	token, err := e2b.Token(handlers, s.Caller, id)
	if err != nil {
		t.Fatal(err)
	}
	return o, s, token
}

// TestCharset: what the media type of a message says of its characters is no other codec.
func TestCharset(t *testing.T) {
	_, s, token := use(t)
	for _, media := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"} {
		if w := ask(s.Server, http.MethodPost, "/filesystem.Filesystem/Stat", `{"path":"/d"}`, "X-Access-Token", token, "Content-Type", media); w.Code != 200 || !strings.Contains(w.Body.String(), `"path":"/d"`) {
			t.Errorf("%s: %d %s", media, w.Code, w.Body)
		}
	}
}

// TestUnpackedRoom: a body that is unpacked ends when what it becomes has no room.
func TestUnpackedRoom(t *testing.T) {
	asked := 0
	_, s, token := use(t, func(c *httpapitest.Setup) {
		c.Room = func(int64) error {
			if asked++; asked > 2 {
				return fault.New(fault.Unavailable, "the disk is full")
			}
			return nil
		}
	})
	var body bytes.Buffer
	packed := gzip.NewWriter(&body)
	if _, err := packed.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	w := ask(s.Server, http.MethodPost, "/files?path=/x", body.String(), "X-Access-Token", token, "Content-Type", "application/octet-stream", "Content-Encoding", "gzip")
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the disk is full") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestForkThatFails: a copy that its client is not told of does not stay.
func TestForkThatFails(t *testing.T) {
	o, s, _ := use(t)
	w := ask(s.Server, http.MethodPost, "/sandboxes/"+id+"/fork", "{}", "X-Api-Key", httpapitest.Key)
	if w.Code != http.StatusCreated || !strings.Contains(w.Body.String(), "not now") || o.destroyed.Load() != "sb-00000000000000ff" {
		t.Errorf("%d %s, destroyed %v", w.Code, w.Body, o.destroyed.Load())
	}
}

// TestNetworkOfABlockedEnvironment: what is to be open is read, also where nothing can be.
func TestNetworkOfABlockedEnvironment(t *testing.T) {
	_, s, _ := use(t)
	w := ask(s.Server, http.MethodPut, "/sandboxes/"+id+"/network", `{"denyOut":["0.0.0.0/0"],"allowOut":["10.0.0.0/99"]}`, "X-Api-Key", httpapitest.Key, "Content-Type", "application/json")
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "10.0.0.0/99") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestWatcherThatIsNotAsked: it keeps no more than some of the changes, says so when it is
// asked, and does not keep its sandbox from being paused.
func TestWatcherThatIsNotAsked(t *testing.T) {
	o, s, token := use(t)
	call := func(method, body string) (int, string) {
		w := ask(s.Server, http.MethodPost, "/filesystem.Filesystem/"+method, body, "X-Access-Token", token)
		return w.Code, w.Body.String()
	}
	watch := func() string {
		code, said := call("CreateWatcher", `{"path":"/d"}`)
		var made e2b.WatcherID
		if err := json.Unmarshal([]byte(said), &made); err != nil || code != 200 {
			t.Fatalf("%d %s", code, said)
		}
		return fmt.Sprintf(`{"watcherId":%q}`, made.ID)
	}
	first, long, took := watch(), "/d/"+strings.Repeat("n", 4000), 0
	for o.using.Load() > 0 {
		select {
		case o.events <- file.Event{Change: file.Created, Path: long}:
			took++
		case <-time.After(10 * time.Millisecond):
		}
	}
	if took > 300 {
		t.Errorf("%d events of 4 KB were taken", took)
	}
	if code, said := call("GetWatcherEvents", first); code != 200 || !strings.Contains(said, "nnn") {
		t.Errorf("%d %.200s", code, said)
	}
	if code, said := call("GetWatcherEvents", first); code != http.StatusTooManyRequests || !strings.Contains(said, "start another watcher") {
		t.Errorf("%d %.200s", code, said)
	}

	second := watch()
	if w := ask(s.Server, http.MethodPost, "/sandboxes/"+id+"/pause", "", "X-Api-Key", httpapitest.Key); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, of := range []string{first, second} {
		atolltest.Until(t, 10*time.Second, "the watch is gone after the pause", func() bool {
			code, _ := call("GetWatcherEvents", of)
			return code == http.StatusNotFound
		})
	}
}

// dial sends the beginning of a request by hand, and returns its connection. stop shuts
// the server down.
func dial(t *testing.T, s *httpapitest.Server, token, path, length string, body []byte) (conn net.Conn, stop func() error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	conn, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: x\r\nX-Access-Token: %s\r\nContent-Type: application/connect+json\r\n%s\r\n\r\n%s", e2b.Prefix, path, token, length, body); err != nil {
		t.Fatal(err)
	}
	return conn, func() error { cancel(); return <-served }
}

// said is the answer that a connection gets.
func said(t *testing.T, conn net.Conn) string {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// message is one in its envelope, as a chunk of a body.
func message(text string) []byte {
	m := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(m), m)
}

// TestBodyThatIsNotAll: what is refused is answered at once, also where the client has yet
// to send the rest of its body.
func TestBodyThatIsNotAll(t *testing.T) {
	const chunked = "Transfer-Encoding: chunked"
	for name, c := range map[string]struct {
		path, length string
		body         []byte
		says         string
	}{
		"compressed":      {"/process.Process/Start", "Content-Length: 1000", []byte{1, 0, 0, 0, 2, '{', '}'}, "compress"},
		"no such process": {"/process.Process/StreamInput", chunked, message(`{"start":{"process":{"pid":8}}}`), "pid 8 not found"},
		"no start":        {"/process.Process/StreamInput", chunked, message(`{}`), "start"},
	} {
		t.Run(name, func(t *testing.T) {
			_, s, token := use(t)
			conn, stop := dial(t, s, token, c.path, c.length, c.body)
			if text := said(t, conn); !strings.Contains(text, c.says) {
				t.Errorf("%q", text)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStreamOfInputAtShutdown: a stream of input that waits for its client ends with the
// server.
func TestStreamOfInputAtShutdown(t *testing.T) {
	o, s, token := use(t, func(c *httpapitest.Setup) { c.Grace = 10 * time.Millisecond })
	conn, stop := dial(t, s, token, "/process.Process/StreamInput", "Transfer-Encoding: chunked",
		append(message(`{"start":{"process":{"pid":7}}}`), message(`{"data":{"input":{"stdin":"dHlwZWQ="}}}`)...))
	if got := <-o.input; got != "typed" {
		t.Errorf("the program read %q", got)
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	if text := said(t, conn); !strings.Contains(text, "shutting down") {
		t.Errorf("%q", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := o.using.Load(); n != 0 {
		t.Errorf("%d uses of the sandbox are left", n)
	}
}
