package pooltool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/control/gateway"
	"github.com/atoll-run/atoll/internal/control/tools"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/filetool"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// world is what a Pool calls: it answers with out and err, and notes what it was asked.
type world struct {
	out   any
	err   error
	wait  bool // until the call's context ends
	scope []tenant.Scope
	asked []string
	by    *tools.Caller
	ended string
	kept  string
}

func (w *world) Definitions() []tools.Definition { return tools.Definitions() }

func (w *world) Call(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error) {
	w.asked, w.by = append(w.asked, name+string(input)), c
	if w.wait {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return w.out, w.err
}

func (w *world) EndCommand(_ context.Context, c *tools.Caller, _ string) error {
	w.ended = string(c.Command.Process)
	return w.err
}

func (w *world) File(_ context.Context, c *tools.Caller, tool, sandbox string, fc *filetool.Call) (*filetool.Answer, error) {
	w.asked, w.by = append(w.asked, fmt.Sprint(tool, " ", sandbox, " ", fc.Op, fc.Path, fc.Pattern)), c
	a, _ := w.out.(*filetool.Answer)
	return a, w.err
}

func (w *world) Share(ctx context.Context, c *tools.Caller, tool, sandbox string, fc *filetool.Call, keep tools.Keep) (*filetool.Answer, error) {
	a, err := w.File(ctx, c, tool, sandbox, fc)
	if err != nil || a.Failed {
		return a, err
	}
	return a, keep(ctx, strings.NewReader("content"), []string{"secret"})
}

func (w *world) Policy(*tenant.Principal) execution.Policy { return execution.Policy{} }

func (w *world) Keep(_ context.Context, _ *tenant.Principal, req execution.Request, c gateway.Call, r io.Reader, secrets []string) (*execution.Execution, error) {
	text, err := io.ReadAll(r)
	w.kept = fmt.Sprint(req.Outputs, req.Metadata["tool"], c.IdempotencyKey, c.Run, string(text), secrets)
	return &execution.Execution{TraceID: req.TraceID, Status: execution.Success, Files: execution.OutputFiles{Files: []execution.OutputFile{{Name: req.Outputs[0], Bytes: 7}}}}, err
}

func (w *world) Entrant(context.Context, tenant.ID, string, string) (tenant.Principal, error) {
	return tenant.Principal{Key: tenant.Key{Scopes: w.scope}}, nil
}

func open() *world { return &world{scope: []tenant.Scope{tenant.ScopeTools}} }

func callOf(t *testing.T, w *world, name, arguments string) (*Pool, *loop.Call) {
	t.Helper()
	h := &Pool{Set: w, Callers: w, Keeper: w}
	all, err := h.Tools("agt_1")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(t run.Tool) bool { return t.Name == name })
	return h, &loop.Call{
		Run: &run.Run{ID: run.ID("run_" + strings.Repeat("a", 32)), Session: "sess_1"}, Number: 3, Tool: &all[i], Request: &run.Request{},
		Call: model.Call{ID: "c", Name: name, Arguments: arguments},
	}
}

func said(out *loop.Outcome) string { return out.Result.Parts[0].Text }

func TestCalls(t *testing.T) {
	w := open()
	w.out = &tools.ShellOutput{Stdout: "x", ExitCode: 3}
	h, c := callOf(t, w, "shell", `{"command":"a"}`)
	c.Files = map[string][]byte{"in/a": []byte("x")}
	out, err := h.Do(t.Context(), c)
	if err != nil || !out.Result.Failed || said(out) != "Exit code 3\nstdout:\nx\n" || out.Refused {
		t.Errorf("%+v, %v", out, err)
	}
	if want := []string{`write_file{"content":"eA==","encoding":"base64","path":"in/a"}`, `shell{"command":"a"}`}; !slices.Equal(w.asked, want) {
		t.Errorf("%q were asked for", w.asked)
	}
	if w.by.Agent != "agt_1" || w.by.Session != "sess_1" || w.by.Command.Process != "call-"+"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-3" || !h.Claims(c) {
		t.Errorf("%+v", w.by)
	}
	w = open()
	w.out = &tools.ReadFileOutput{Content: strings.Repeat("x", maxTold+1), Size: maxTold + 1}
	h, c = callOf(t, w, "read_file", `{"path":"a"}`)
	if out, err = h.Do(t.Context(), c); err != nil || out.Result.Failed || len(said(out)) > maxTold+100 || !strings.Contains(said(out), `"truncated":true`) || h.Claims(c) {
		t.Errorf("%.100s, %v", said(out), err)
	}
}

// TestFileTools: the tools that only agents have are those of the other sandbox, and say which
// sandbox they are for.
func TestFileTools(t *testing.T) {
	w := open()
	w.out = &filetool.Answer{Count: 1, Body: []byte("a:1:x\n")}
	h, c := callOf(t, w, "grep", `{"pattern":"x","sandbox":"two"}`)
	if out, err := h.Do(t.Context(), c); err != nil || said(out) != "a:1:x\n" || h.Claims(c) || w.by.Command.Process != "" {
		t.Errorf("%+v, %v", out, err)
	}
	w.out = &filetool.Answer{Failed: true, Body: []byte("it is there twice")}
	h, c = callOf(t, w, "edit_file", `{"file_path":"f","old_string":"a","new_string":"b"}`)
	if out, err := h.Do(t.Context(), c); err != nil || said(out) != "it is there twice" || !out.Result.Failed || !h.Claims(c) || w.by.Command.Process == "" {
		t.Errorf("%+v, %v", out, err)
	}
	if want := []string{"grep two grepx", "edit_file default editf"}; !slices.Equal(w.asked, want) {
		t.Errorf("%q were asked for", w.asked)
	}
	for arguments, says := range map[string]string{
		`{"file_path":"f","old_string":"a"}`: "new_string", `{"sandbox":7,"file_path":"f","old_string":"a","new_string":"b"}`: "sandbox must be a string",
		`{"file_path":"f","old_string":"a","new_string":"b","x":1}`: "unknown field", `[]`: "must be a JSON object", `{`: "not valid JSON",
	} {
		c.Call.Arguments = arguments
		if out, err := h.Do(t.Context(), c); err != nil || !out.Refused || !strings.Contains(said(out), says) {
			t.Errorf("%s: %+v, %v", arguments, out, err)
		}
	}
	w.out = &filetool.Answer{Bytes: 7}
	h, c = callOf(t, w, "share_file", `{"file_path":"/tmp/report.pdf"}`)
	out, err := h.Do(t.Context(), c)
	if err != nil || !strings.Contains(said(out), `"report.pdf" with 7 bytes`) || len(out.Notes) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if want := "[.atoll/shared]share_file" + string(c.Run.ID) + "/3" + string(c.Run.ID) + "content[secret]"; w.kept != want {
		t.Errorf("%q was kept, want %q", w.kept, want)
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		tool  string
		err   error
		begun bool
		want  error  // of the server
		says  string // to the model
		ends  bool
	}{
		"what the model did wrong": {"shell", fault.New(fault.Invalid, "no such field"), false, nil, "no such field", false},
		"a lost sandbox":           {"shell", fault.New(fault.Conflict, "the sandbox is lost"), false, nil, "is lost", false},
		"a machine away":           {"shell", fault.New(fault.Unavailable, "away"), false, nil, "away", false},
		"one away that had begun":  {"shell", fault.New(fault.Unavailable, "away"), true, loop.ErrUnknown, "", false},
		"no trace of it":           {"shell", tools.ErrNoTrace, true, loop.ErrUnknown, "", false},
		"had effects":              {"execute_code", nil, true, loop.ErrUnknown, "", false},
		"the server's own failure": {"glob", context.DeadlineExceeded, false, context.DeadlineExceeded, "", false},
		"the month's credits":      {"glob", fault.Limit("monthly_credits", time.Time{}, "spent"), false, nil, "spent", true},
		"too many sandboxes":       {"shell", fault.Limit("session_sandboxes", time.Time{}, "the most"), false, nil, "the most", false},
	} {
		w := open()
		w.err = c.err
		h, call := callOf(t, w, c.tool, `{}`)
		call.Begun = c.begun
		out, err := h.Do(t.Context(), call)
		if c.want != nil {
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !out.Refused || !out.Result.Failed || !strings.Contains(said(out), c.says) || (out.Ends != nil) != c.ends {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
	w := open()
	w.scope = nil
	h, call := callOf(t, w, "glob", `{}`)
	if out, err := h.Do(t.Context(), call); err != nil || !strings.Contains(said(out), `scope "tools"`) || len(w.asked) > 0 {
		t.Errorf("a key without the scope: %+v, %v", out, err)
	}
}

// TestEnds: a command that another process goes on with stays, and any other end ends it.
func TestEnds(t *testing.T) {
	gone := errors.New("cancelled")
	for cause, want := range map[error]error{loop.ErrLeft: loop.ErrLeft, gone: context.Canceled} {
		w := open()
		w.wait = true
		h, call := callOf(t, w, "shell", `{}`)
		ctx, cancel := context.WithCancelCause(t.Context())
		set := &noting{world: w, called: func() { cancel(cause) }}
		h.Set = set
		if _, err := h.Do(ctx, call); !errors.Is(err, cause) || !errors.Is(set.cause, want) {
			t.Errorf("after %v: %v, and the command's was %v", cause, err, set.cause)
		}
	}
	w := open()
	w.err = fault.New(fault.NotFound, "no sandbox")
	h, call := callOf(t, w, "shell", `{}`)
	if _, err := h.End(t.Context(), call); err != nil || !strings.HasSuffix(w.ended, "-3") {
		t.Errorf("%v, %q was ended", err, w.ended)
	}
}

type noting struct {
	*world
	called func()
	cause  error
}

func (n *noting) Call(ctx context.Context, name string, c *tools.Caller, input []byte) (any, error) {
	n.called()
	_, err := n.world.Call(ctx, name, c, input)
	n.cause = context.Cause(ctx)
	return nil, err
}
