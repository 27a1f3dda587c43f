package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/test/atolltest"
)

// each runs a test with sessions and without.
func each(t *testing.T, f func(t *testing.T, version string)) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) { f(t, version) })
	}
}

func TestTools(t *testing.T) {
	k := open(t)
	each(t, func(t *testing.T, version string) {
		c := k.connect(t, "alice", version, "", nil)
		if got := c.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "atoll" || !strings.Contains(got.Instructions, "sandbox") {
			t.Errorf("got %+v", got)
		}
		// A client without a session is told with whom it shares its sandboxes.
		const warning = "shared with every other client of this API key"
		if got := c.InitializeResult().Instructions; strings.Contains(got, warning) != (version == versions["stateless"]) {
			t.Errorf("got %q", got)
		}
		if got := k.connect(t, "alice", version, "?session=own", nil).InitializeResult().Instructions; strings.Contains(got, warning) {
			t.Errorf("got %q", got)
		}
		listed := map[string]*mcp.Tool{}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			listed[tool.Name] = tool
		}
		want := append(tools.Definitions(), new(tools.Set).Apart())
		if len(listed) != len(want) {
			t.Errorf("%d tools are listed, want %d", len(listed), len(want))
		}
		for _, d := range want {
			got := listed[d.Name]
			if got == nil {
				t.Errorf("%s is not listed", d.Name)
				continue
			}
			a := got.Annotations
			if got.Description != d.Description || a.ReadOnlyHint != d.Annotations.ReadOnly || *a.DestructiveHint != d.Annotations.Destructive || *a.OpenWorldHint != d.Annotations.OpenWorld {
				t.Errorf("%s is listed as %+v", d.Name, got)
			}
			for _, schema := range []struct {
				got  any
				want []byte
			}{{got.InputSchema, d.Input}, {got.OutputSchema, d.Output}} {
				raw, _ := json.Marshal(schema.got)
				if !same(t, raw, schema.want) {
					t.Errorf("%s has the schema %s, want %s", d.Name, raw, schema.want)
				}
				if strings.Contains(string(raw), "sub_paths") || strings.Contains(string(raw), "secret") || strings.Contains(string(raw), "env_vars") {
					t.Errorf("%s shows a model %s", d.Name, raw)
				}
			}
		}
		if _, err := c.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "nonsense"}); err == nil || !strings.Contains(err.Error(), "invalid params") {
			t.Errorf("a cursor that is none: %v", err)
		}
		if less, err := k.connect(t, "tools", version, "", nil).ListTools(t.Context(), nil); err != nil || len(less.Tools) != len(want)-1 {
			t.Errorf("a key without the scope execute is shown %d tools (%v)", len(less.Tools), err)
		}
	})
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		t.Fatalf("not JSON: %s, %s", a, b)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestCall(t *testing.T) {
	k := open(t)
	each(t, func(t *testing.T, version string) {
		c := k.connect(t, "alice", version, "?session=mine&agent=a&template=b", nil)
		for _, name := range []string{"shell", "sandbox_execute"} {
			got, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"command": "ü <&>"}})
			if err != nil || got.IsError || got.Meta["run.atoll/trace_id"] == nil || got.Meta["run.atoll/session"] != "mine" {
				t.Fatalf("got %+v, %v", got, err)
			}
			var structured echo
			raw, _ := json.Marshal(got.StructuredContent)
			if err := json.Unmarshal(raw, &structured); err != nil {
				t.Fatal(err)
			}
			if structured != (echo{Tool: name, Session: "mine", Agent: "a", Template: "b", Key: "key_alice", Input: `{"command":"ü <&>"}`}) {
				t.Errorf("got %+v", structured)
			}
			if text := got.Content[0].(*mcp.TextContent).Text; !same(t, []byte(text), raw) {
				t.Errorf("the text is %s, and not %s", text, raw)
			}
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), `unknown tool "nothing"`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestFailures(t *testing.T) {
	k := open(t)
	resets := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	each(t, func(t *testing.T, version string) {
		c := k.connect(t, "alice", version, "", nil)
		call := func(answer func() (any, error)) (*mcp.CallToolResult, error) {
			k.answer = func(context.Context, string, *tools.Caller, []byte) (any, error) { return answer() }
			return c.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell"})
		}
		for want, err := range map[string]error{
			"command is required": fault.New(fault.Invalid, "command is required"),
			"too many (limit: sandboxes, resets at 2030-01-02T03:04:05Z)": fault.Limit("sandboxes", resets, "too many"),
			"no such file": fault.Wrap(fault.NotFound, errors.New("a detail"), "no such file"),
		} {
			got, callErr := call(func() (any, error) { return nil, err })
			if callErr != nil || !got.IsError || got.StructuredContent != nil || got.Content[0].(*mcp.TextContent).Text != want {
				t.Errorf("%v: %+v %v", err, got, callErr)
			}
		}
		if got, err := call(func() (any, error) { return nil, errors.New("password of the database") }); err == nil || strings.Contains(err.Error(), "password") || !strings.Contains(err.Error(), "trc_") {
			t.Errorf("got %+v %v", got, err)
		}
		got, err := call(func() (any, error) { return &tools.ShellOutput{ExitCode: 3}, nil })
		if err != nil || !got.IsError || got.StructuredContent.(map[string]any)["exit_code"] != 3.0 {
			t.Errorf("a command that fails: %+v %v", got, err)
		}
	})
}

// blocked answers calls when they are cancelled, and says when they began.
func (k *kit) blocked() (began chan *tools.Caller, ended chan error) {
	began, ended = make(chan *tools.Caller, 1), make(chan error, 1)
	k.answer = func(ctx context.Context, _ string, c *tools.Caller, _ []byte) (any, error) {
		began <- c
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	}
	return began, ended
}

func TestCancel(t *testing.T) {
	k := open(t)
	began, ended := k.blocked()
	each(t, func(t *testing.T, version string) {
		c := k.connect(t, "alice", version, "", nil)
		for _, name := range []string{"shell", "execute_code", "sandbox_execute"} {
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name})
				failed <- err
			}()
			call := <-began
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) { // the shell kills its command for this cause alone
				t.Errorf("%s ended with %v", name, err)
			}
			if err := <-failed; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if name != "shell" {
				atolltest.Until(t, 10*time.Second, "the execution of "+name+" is ended", func() bool {
					k.mu.Lock()
					defer k.mu.Unlock()
					return len(k.cancelled) > 0 && k.cancelled[len(k.cancelled)-1] == call.TraceID
				})
			}
		}
	})
}

func TestACallWithoutSessionEndsWithItsRequest(t *testing.T) {
	k := open(t)
	began, ended := k.blocked()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/mcp", strings.NewReader(callShell))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if res, err := bearer("alice").RoundTrip(r); err == nil {
			res.Body.Close()
		}
	}()
	if c := <-began; c.Session != "mcp-key_alice" {
		t.Errorf("the call is in %q", c.Session)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	<-done
}

func TestProgress(t *testing.T) {
	k := open(t)
	each(t, func(t *testing.T, version string) {
		told := make(chan *mcp.ProgressNotificationParams, 10)
		c := k.connect(t, "alice", version, "", &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { told <- r.Params },
		})
		enough := make(chan struct{})
		k.answer = func(ctx context.Context, _ string, _ *tools.Caller, _ []byte) (any, error) {
			select {
			case <-enough:
			case <-ctx.Done():
			}
			return &tools.ShellOutput{}, nil
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "shell", Meta: mcp.Meta{"progressToken": "p1"}})
			done <- err
		}()
		before := 0.0
		for range 2 {
			p := <-told
			if p.ProgressToken != "p1" || p.Progress <= before || p.Message != fmt.Sprintf("shell: running for %gs", p.Progress) {
				t.Errorf("told %+v after %g", p, before)
			}
			before = p.Progress
		}
		close(enough)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
