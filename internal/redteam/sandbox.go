package redteam

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// sandbox is a named sandbox.
type sandbox struct {
	by   caller
	ID   string `json:"sandbox_id"`
	Name string `json:"name"`
}

// path is a path below the sandbox, with queries as pairs.
func (s sandbox) path(below string, query ...string) string {
	q := url.Values{}
	for i := 0; i < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	out := "/v1/sandboxes/" + url.PathEscape(s.ID) + below
	if len(q) > 0 {
		out += "?" + q.Encode()
	}
	return out
}

// create makes a named sandbox.
func (a *arena) create(ctx context.Context, by caller) (sandbox, error) {
	s := sandbox{by: by}
	err := by.must(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "redteam-" + token(4)}, &s)
	return s, err
}

// theBox is the sandbox without a network that cases share.
func (a *arena) theBox(ctx context.Context) (sandbox, error) {
	return a.box.get(ctx, func(ctx context.Context) (sandbox, error) { return a.create(ctx, a.plain) })
}

// theWire is the sandbox with a network that cases share.
func (a *arena) theWire(ctx context.Context) (sandbox, error) {
	return a.wire.get(ctx, func(ctx context.Context) (sandbox, error) { return a.create(ctx, a.net) })
}

// joinEvents joins the data of events, in NDJSON or as server-sent events.
func joinEvents(body []byte) (text []byte) {
	for line := range bytes.Lines(body) {
		var e struct{ Data, Stdout, Stderr string }
		line = bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data:"))
		if json.Unmarshal(line, &e) == nil {
			text = append(text, e.Data+e.Stdout+e.Stderr...)
		}
	}
	return text
}

// output is what a process left.
type output struct {
	Stdout, Stderr string
	Exit           int
	Signal         string
}

func (o output) String() string {
	return fmt.Sprintf("exit code %d %s, stdout %.600q, stderr %.600q", o.Exit, o.Signal, o.Stdout, o.Stderr)
}

// start runs a program in the sandbox to its end.
func (s sandbox) start(ctx context.Context, argv ...string) (out output, err error) {
	var p struct {
		ID string `json:"process_id"`
	}
	if err := s.by.must(ctx, http.MethodPost, s.path("/processes"), map[string]any{"argv": argv, "timeout_ms": 30_000}, &p); err != nil {
		return out, err
	}
	got, err := s.by.do(ctx, http.MethodGet, s.path("/processes/"+p.ID+"/output", "follow", "true"), nil, "Accept", "application/x-ndjson")
	if err != nil {
		return out, err
	}
	if got.Status != http.StatusOK {
		return out, fmt.Errorf("output of a process: %s", got)
	}
	lines := bufio.NewScanner(bytes.NewReader(got.Body))
	lines.Buffer(nil, maxAnswer)
	ended := false
	for lines.Scan() {
		var e struct {
			Type, Stream, Data, Signal, Reason string
			ExitCode                           *int `json:"exit_code"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return out, fmt.Errorf("an event of a process: %w: %.200s", err, lines.Text())
		}
		switch {
		case e.Type == "output" && e.Stream == "stderr":
			out.Stderr += e.Data
		case e.Type == "output":
			out.Stdout += e.Data
		case e.Type == "exit":
			ended, out.Signal = true, e.Signal
			if e.ExitCode != nil {
				out.Exit = *e.ExitCode
			}
		case e.Type == "stopped":
			return out, fmt.Errorf("the conversation with the sandbox ended: %s", e.Reason)
		}
	}
	if !ended {
		return out, fmt.Errorf("a process has no end: %s", out)
	}
	return out, nil
}

// prelude is what the programs of cases may use. A program tries something and says
// with got what it got that it should not have; what it may not do is the end of an
// attempt, not of the program. It says "tried" after each attempt, and a program that
// tried nothing proves nothing.
const prelude = `import os, sys, socket, ctypes, errno, struct, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
def got(*what): print('GOT', *what, flush=True)
def attempt(f, *args):
    try: f(*args)
    except (OSError, ValueError): pass
    print('tried', flush=True)
def call(f, *args):
    r = f(*args)
    if r < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r
`

// judge says whether a program of attempts held: it made at least so many, and none
// got anything.
func judge(out output, attempts int) error {
	var tried int
	for line := range strings.Lines(out.Stdout) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "GOT ") {
			return found("%s", strings.TrimPrefix(line, "GOT "))
		}
		if line == "tried" {
			tried++
		}
	}
	if tried < attempts {
		return fmt.Errorf("the program made %d of %d attempts: %s", tried, attempts, out)
	}
	return nil
}

// program returns a run function that executes a Python program of attempts. The program runs in
// the shared sandbox without a network, unless the context has a runner.
func program(attempts int, code string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		if run, ok := ctx.Value(runnerKey{}).(runner); ok {
			out, err := run(ctx, prelude+code)
			if err != nil {
				return err
			}
			return judge(out, attempts)
		}
		s, err := a.theBox(ctx)
		if err != nil {
			return err
		}
		out, err := s.start(ctx, "python3", "-c", prelude+code)
		if err != nil {
			a.box.drop() // the next case has another
			return err
		}
		return judge(out, attempts)
	}
}

// execution is the answer of one program in a fresh sandbox.
type execution struct {
	Status int // of HTTP
	Trace  string
	Raw    []byte

	Success         bool   `json:"success"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	Exit            int    `json:"exit_code"`
	Reason          string `json:"error"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
}

func (e execution) String() string { return fmt.Sprintf("HTTP %d, %.1000s", e.Status, e.Raw) }

// execute runs a program in a fresh sandbox; more are other fields of the request.
func (a *arena) execute(ctx context.Context, by caller, language, code string, timeout int, more map[string]any) (e execution, err error) {
	body := map[string]any{"language": language, "code": code, "timeout": timeout}
	for k, v := range more {
		body[k] = v
	}
	got, err := by.do(ctx, http.MethodPost, "/v1/sandbox/execute", body)
	if err != nil {
		return e, err
	}
	_ = json.Unmarshal(got.Body, &e) // of a refusal there is nothing but the status
	e.Status, e.Trace, e.Raw = got.Status, got.Header.Get("X-Trace-Id"), got.Body
	return e, nil
}
