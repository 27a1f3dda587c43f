package adminapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// At names a sandbox: by its name in a session, or by its id.
type At struct{ Session, Name string }

func (at At) path(more ...string) string {
	path := "/v1/sandboxes/" + url.PathEscape(at.Name)
	for _, part := range more {
		path += "/" + part
	}
	return path
}

func (at At) query(pairs ...string) url.Values {
	q := url.Values{"session": {at.Session}}
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	return q
}

// Sandboxes lists named sandboxes of a session, or of all if that is "".
func (c *Client) Sandboxes(ctx context.Context, session string) ([]httpapi.Sandbox, error) {
	q := url.Values{}
	if session != "" {
		q.Set("session", session)
	}
	all, err := call[httpapi.SandboxList](ctx, c, http.MethodGet, "/v1/sandboxes", q, nil)
	return all.Data, err
}

// CreateSandbox makes a named sandbox, unless there is one of that name.
func (c *Client) CreateSandbox(ctx context.Context, in httpapi.NewSandbox) (httpapi.Sandbox, error) {
	return call[httpapi.Sandbox](ctx, c, http.MethodPost, "/v1/sandboxes", nil, in)
}

// DeleteSandbox destroys a named sandbox.
func (c *Client) DeleteSandbox(ctx context.Context, at At) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at.path(), at.query(), nil)
	return err
}

// SleepSandbox has a sandbox sleep at once.
func (c *Client) SleepSandbox(ctx context.Context, at At) (httpapi.Sandbox, error) {
	return call[httpapi.Sandbox](ctx, c, http.MethodPost, at.path("sleep"), at.query(), nil)
}

// ForkSandbox makes copies of a sandbox.
func (c *Client) ForkSandbox(ctx context.Context, at At, count int) ([]httpapi.Sandbox, error) {
	all, err := call[httpapi.SandboxList](ctx, c, http.MethodPost, at.path("fork"), at.query("count", strconv.Itoa(count)), nil)
	return all.Data, err
}

// CreateSnapshot keeps a sandbox as it is now, for a time; 0 is the server's.
func (c *Client) CreateSnapshot(ctx context.Context, at At, keep time.Duration) (httpapi.Snapshot, error) {
	q := at.query()
	if keep != 0 {
		q.Set("keep_ms", strconv.FormatInt(keep.Milliseconds(), 10))
	}
	return call[httpapi.Snapshot](ctx, c, http.MethodPost, at.path("snapshots"), q, nil)
}

// Snapshots lists snapshots, at most most of them; 0 is all.
func (c *Client) Snapshots(ctx context.Context, most int) ([]httpapi.Snapshot, error) {
	return list[httpapi.Snapshot](ctx, c, "/v1/snapshots", nil, most)
}

// Snapshot returns a snapshot.
func (c *Client) Snapshot(ctx context.Context, id string) (httpapi.Snapshot, error) {
	return call[httpapi.Snapshot](ctx, c, http.MethodGet, "/v1/snapshots/"+url.PathEscape(id), nil, nil)
}

// DeleteSnapshot deletes a snapshot.
func (c *Client) DeleteSnapshot(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, "/v1/snapshots/"+url.PathEscape(id), nil, nil)
	return err
}

// SandboxPorts lists the ports that something in a sandbox listens on.
func (c *Client) SandboxPorts(ctx context.Context, at At) ([]httpapi.SandboxPort, error) {
	all, err := call[httpapi.SandboxPorts](ctx, c, http.MethodGet, at.path("ports"), at.query(), nil)
	return all.Data, err
}

// Orphans lists what there is of sandboxes that no record knows.
func (c *Client) Orphans(ctx context.Context) ([]string, error) {
	all, err := call[httpapi.Orphans](ctx, c, http.MethodGet, "/v1/admin/sandboxes/orphans", nil, nil)
	return all.Data, err
}

// Reap removes the orphans, and returns which they were.
func (c *Client) Reap(ctx context.Context) ([]string, error) {
	all, err := call[httpapi.Orphans](ctx, c, http.MethodDelete, "/v1/admin/sandboxes/orphans", nil, nil)
	return all.Data, err
}

// StartProcess starts a process in a sandbox.
func (c *Client) StartProcess(ctx context.Context, at At, in httpapi.NewProcess) (httpapi.SandboxProcess, error) {
	return call[httpapi.SandboxProcess](ctx, c, http.MethodPost, at.path("processes"), at.query(), in)
}

// Processes lists the processes of a sandbox.
func (c *Client) Processes(ctx context.Context, at At) ([]httpapi.SandboxProcess, error) {
	all, err := call[httpapi.SandboxProcesses](ctx, c, http.MethodGet, at.path("processes"), at.query(), nil)
	return all.Data, err
}

// EndProcess ends a process and all it started, and drops its output.
func (c *Client) EndProcess(ctx context.Context, at At, id string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, at.path("processes", id), at.query(), nil)
	return err
}

// FollowProcess passes what a process writes to each, as bytes in base64, until
// it ends: the last event says how. With follow false it passes what there is.
func (c *Client) FollowProcess(ctx context.Context, at At, id string, follow bool, each func(httpapi.ProcessEvent) error) error {
	res, err := c.send(ctx, http.MethodGet, at.path("processes", id, "output"), at.query("encoding", "base64", "follow", strconv.FormatBool(follow)), nil, "application/x-ndjson")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the server's stream broke off: %w", err)
		}
		var e httpapi.ProcessEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read the server's stream: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}

// FeedProcess writes all of r to a process, and ends its input.
func (c *Client) FeedProcess(ctx context.Context, at At, id string, r io.Reader) error {
	res, err := c.send(ctx, http.MethodPost, at.path("processes", id, "stdin"), at.query("close", "true"), r, "application/json")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// StatSandboxFile describes a file of a sandbox.
func (c *Client) StatSandboxFile(ctx context.Context, at At, file string) (httpapi.SandboxFile, error) {
	return call[httpapi.SandboxFile](ctx, c, http.MethodGet, at.path("files", "stat"), at.query("path", file), nil)
}

// ReadSandboxFile writes a file of a sandbox to w, PackSandbox a file or folder as
// a tar archive.
func (c *Client) ReadSandboxFile(ctx context.Context, at At, file string, w io.Writer) error {
	return c.copyTo(ctx, w, at.path("files"), at.query("path", file), "*/*")
}

// PackSandbox: see ReadSandboxFile.
func (c *Client) PackSandbox(ctx context.Context, at At, file string, w io.Writer) error {
	return c.copyTo(ctx, w, at.path("archive"), at.query("path", file), "*/*")
}

// WriteSandboxFile stores what r has as a file of a sandbox, with permissions.
func (c *Client) WriteSandboxFile(ctx context.Context, at At, file string, mode uint32, r io.Reader) error {
	return c.put(ctx, at.path("files"), at.query("path", file, "mode", strconv.FormatUint(uint64(mode), 8)), r)
}

// UnpackSandbox unpacks a tar archive: the entry "." becomes file.
func (c *Client) UnpackSandbox(ctx context.Context, at At, file string, r io.Reader) error {
	return c.put(ctx, at.path("archive"), at.query("path", file), r)
}

func (c *Client) put(ctx context.Context, path string, q url.Values, r io.Reader) error {
	res, err := c.send(ctx, http.MethodPut, path, q, r, "application/json")
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// Terminal opens a terminal. Its messages are an httpapi.TerminalMessage each
// where they are text.
func (c *Client) Terminal(ctx context.Context, at At, q url.Values) (*websocket.Conn, error) {
	q.Set("session", at.Session)
	target := "ws" + strings.TrimPrefix(c.base, "http") + at.path("terminal") + "?" + q.Encode()
	//nolint:bodyclose // the library says that there is nothing to close
	conn, res, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient: c.http, HTTPHeader: http.Header{"Authorization": {"Bearer " + c.key}},
	})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, refused(res)
		}
		return nil, fmt.Errorf("no answer from %s: %w", c.base, err)
	}
	return conn, nil
}
