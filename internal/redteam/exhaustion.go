package redteam

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// exhaustionCases take all they can, within sandboxes and tenants of their own.
func exhaustionCases() []Case {
	return []Case{
		{"exhaustion/fork-bomb", High, "runs a fork bomb that ignores its end", "it is answered 10 s after its time-out at most, and the next program runs", bomb("import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True:\n  try: os.fork()\n  except OSError: pass")},
		{"exhaustion/memory", High, "allocates memory in many processes until it is ended", "likewise", bomb("import os\nb = []\nwhile True:\n  try: os.fork()\n  except OSError: pass\n  b.append(b'x' * (1 << 22))")},
		{"exhaustion/disk", High, "writes into every folder until it is stopped", "less than the memory of its sandbox is written", exhaust(fmt.Sprintf(`
n = 0
for d in '/tmp', '/dev/shm', '/home/user', '/var/tmp', '/run', '/':
    try:
        with open(d + '/redteam-fill', 'wb') as f:
            while n < 1500: f.write(bytes(1 << 20)); f.flush(); n += 1
    except OSError: pass
if n << 20 > %d: got(n, 'MiB of files')
print('tried')
`, sandboxMemory))},
		{"exhaustion/inodes", High, "makes empty files until it is stopped", "no folder takes more than the environment allows", exhaust(`
for d in '/tmp', '/dev/shm', '/var/tmp':
    n = 0
    try:
        while n < 25000: os.close(os.open('%s/redteam-%d' % (d, n), os.O_CREAT)); n += 1
    except OSError: pass
    if n > 20000: got(n, 'files in', d)
print('tried')
`)},
		{"exhaustion/processes", High, "starts processes until it is stopped", "there are no more than the environment allows", exhaust(`
import signal
n = 0
try:
    while n < 400:
        if os.fork() == 0: signal.pause()
        n += 1
except OSError: pass
if n > 128: got(n, 'processes')
print('tried')
`)},
		{"exhaustion/output", High, "prints 64 MiB", "the answer is cut at the bound and says so", floodOutput},
		{"exhaustion/sandbox-disk", High, "writes 1 GiB into a named sandbox whose bound is 64 MiB", "it is stopped within seconds", sandboxDisk},
		{"exhaustion/request-rate", High, "sends 600 requests with a key whose plan has 20 a second", "the server answers them with 429 and Retry-After; another key of the tenant still works", requestRate},
		{"exhaustion/concurrency", High, "starts more executions, sandboxes and threads than its plan has", "the server answers the excess with 429", overPlan},
		{"exhaustion/thread-size", High, "stores a file above its plan's bound in a thread", "it is refused, and nothing of it is kept", threadSize},
		{"exhaustion/glob", High, "asks for 30 pairs of braces, and leaves", "it is answered within 10 s, and so is what comes next", globBraces},
		{"exhaustion/connections", High, "holds 300 connections that never finish a request", "who has a key is answered within 5 s", idleConnections},
	}
}

// bomb runs a program with a time-out of 2 s, and then one that must succeed.
func bomb(code string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		began := time.Now()
		e, err := a.execute(ctx, a.plain, "python", code, 2, nil)
		if err != nil {
			return err
		}
		if took := time.Since(began); e.Status == http.StatusOK && e.Success || took > 12*time.Second {
			return found("after %v: %s", took.Round(time.Second), e)
		}
		e, err = a.execute(ctx, a.plain, "python", "print('on')", 20, nil)
		if err != nil {
			return err
		}
		if e.Stdout != "on\n" {
			return found("the next program: %s", e)
		}
		return nil
	}
}

// exhaust runs a program of one attempt in a fresh sandbox. One that was ended for what
// it took has not got more.
func exhaust(code string) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		e, err := a.execute(ctx, a.plain, "python", prelude+code, 20, nil)
		if err != nil {
			return err
		}
		if e.Status == http.StatusOK && !e.Success && e.Reason != "" && !strings.Contains(e.Stdout, "GOT ") {
			return nil
		}
		return judge(output{Stdout: e.Stdout, Stderr: e.Stderr, Exit: e.Exit}, 1)
	}
}

func floodOutput(ctx context.Context, a *arena) error {
	e, err := a.execute(ctx, a.plain, "bash", "head -c 64M /dev/zero | tr '\\0' x", 40, nil)
	if err != nil {
		return err
	}
	if e.Status == http.StatusOK && (len(e.Stdout) >= 64*mib || !e.StdoutTruncated) {
		return found("%d bytes of output, said to be cut: %v", len(e.Stdout), e.StdoutTruncated)
	}
	return nil
}

func sandboxDisk(ctx context.Context, a *arena) error {
	s, err := a.create(ctx, a.plain)
	if err != nil {
		return err
	}
	// The program may be ended at any moment, and so may be its sandbox.
	_, _ = s.start(ctx, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do head -c 128M /dev/zero > /home/user/fill-$i; sleep 1; done")
	out, err := s.start(ctx, "sh", "-c", "echo size $(du -sm /home/user | cut -f1)")
	if err != nil {
		return gone(ctx, s.by, s.path("")) // it is no more
	}
	var size int
	_, text, _ := strings.Cut(out.Stdout, "size ")
	if _, err := fmt.Sscan(text, &size); err != nil {
		return fmt.Errorf("the size of its files: %w: %s", err, out)
	}
	if size >= 1024 {
		return found("there are %d MiB of files", size)
	}
	return gone(ctx, s.by, s.path(""))
}

func requestRate(ctx context.Context, a *arena) error {
	c, err := a.key(ctx, victimTenant, envPlain, "read")
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var refused *answer
	var wg sync.WaitGroup
	for range maxParallel {
		wg.Go(func() {
			for range 600 / maxParallel {
				got, err := c.once(ctx, http.MethodGet, "/v1/threads?limit=1", nil)
				if err == nil && got.Status == http.StatusTooManyRequests {
					mu.Lock()
					refused = got
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if refused == nil {
		return found("600 requests with one key were served")
	}
	var f struct{ Dimension string }
	_ = json.Unmarshal(refused.Body, &f) // what is no refusal has none
	if f.Dimension != "key_requests" || refused.Header.Get("Retry-After") == "" {
		return found("the refusal does not say of what and until when: %s", refused)
	}
	got, err := a.victim.once(ctx, http.MethodGet, "/v1/threads?limit=1", nil)
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return found("another key of the tenant: %s", got)
	}
	return nil
}

// overPlan asks for more than victimPlan has of each.
func overPlan(ctx context.Context, a *arena) error {
	if _, err := a.thePrey(ctx); err != nil {
		return err
	}
	c, err := a.key(ctx, victimTenant, envPlain, "execute", "read", "sandboxes")
	if err != nil {
		return err
	}
	for what, ask := range map[string]func(i int) (*answer, error){
		"executions": func(int) (*answer, error) {
			return c.once(ctx, http.MethodPost, "/v1/sandbox/execute", map[string]any{"code": "import time; time.sleep(1.5)", "timeout": 10})
		},
		"threads": func(i int) (*answer, error) {
			return c.once(ctx, http.MethodPut, fmt.Sprintf("/v1/threads/redteam-many-%d/files/x", i), []byte("x"))
		},
		"sandboxes": func(i int) (*answer, error) {
			return c.once(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": fmt.Sprintf("redteam-many-%d", i)})
		},
	} {
		var mu sync.Mutex
		var wg sync.WaitGroup
		var errs error
		statuses := map[int]int{}
		for i := range 6 {
			wg.Go(func() {
				got, err := ask(i)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = err
					return
				}
				statuses[got.Status]++
			})
		}
		wg.Wait()
		if errs != nil {
			return errs
		}
		if statuses[http.StatusTooManyRequests] == 0 {
			return found("the server answered 6 %s, more than the plan allows, with %v", what, statuses)
		}
	}
	for i := range 6 {
		if err := gone(ctx, c, fmt.Sprintf("/v1/sandboxes/redteam-many-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func threadSize(ctx context.Context, a *arena) error {
	const at = "/v1/threads/redteam-size"
	got, err := a.plain.do(ctx, http.MethodPut, at+"/files/large", make([]byte, 20*mib))
	if err != nil {
		return err
	}
	if got.Status < 400 || got.Status >= 500 {
		return found("20 MiB in a thread, where 16 MiB are allowed: %s", got)
	}
	if got, err = a.plain.do(ctx, http.MethodGet, at, nil); err != nil {
		return err
	}
	if got.Status != http.StatusNotFound {
		return found("after a file that was refused there is a thread: %s", got)
	}
	return nil
}

func globBraces(ctx context.Context, a *arena) error {
	const session = "redteam-glob"
	s := sandbox{by: a.plain}
	if err := a.plain.must(ctx, http.MethodPost, "/v1/sandboxes", map[string]any{"name": "glob", "session": session}, &s); err != nil {
		return err
	}
	ask := func(ctx context.Context, pattern string) (*answer, error) {
		return a.plain.do(ctx, http.MethodPost, "/v1/sessions/"+session+"/tools/glob", map[string]any{"sandbox": "glob", "pattern": pattern, "cwd": "/"})
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, pattern := range []string{strings.Repeat("{a,b}", 30), strings.Repeat("{a,b,", 30) + strings.Repeat("}", 30), strings.Repeat("**/", 40) + "x", strings.Repeat("*a", 60)} {
		got, err := ask(short, pattern)
		if short.Err() != nil && ctx.Err() == nil {
			return found("the pattern %.60q has no answer within 10 s", pattern)
		}
		if err != nil {
			return err
		}
		if got.Status >= 500 {
			return found("the pattern %.60q: %s", pattern, got)
		}
	}
	got, err := ask(ctx, "*.none")
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return found("glob afterwards: %s", got)
	}
	return gone(ctx, a.plain, s.path(""))
}

func idleConnections(ctx context.Context, a *arena) error {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close() // it was of no use
		}
	}()
	for range 300 {
		conn, err := dial(ctx, a.base)
		if err != nil {
			break // the server has bounded them already
		}
		conns = append(conns, conn)
		_, _ = io.WriteString(conn, "GET /v1/executions HTTP/1.1\r\nHost: "+a.base.Host+"\r\nX-A: ") // it may be closed by now
	}
	if len(conns) == 0 {
		return fmt.Errorf("no connection to %s", a.base.Host)
	}
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fresh := caller{base: a.plain.base, key: a.plain.key, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	got, err := fresh.once(short, http.MethodGet, "/v1/threads?limit=1", nil)
	if err != nil && ctx.Err() == nil {
		return found("beside %d connections that never finish a request, a key has no answer: %v", len(conns), err)
	}
	if err != nil {
		return err
	}
	if got.Status != http.StatusOK {
		return found("beside %d connections that never finish a request: %s", len(conns), got)
	}
	return nil
}
