package bus

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

var (
	buildServer = sync.OnceValues(func() (string, error) { return build(".", "nats-server") })
	buildOldest = sync.OnceValues(func() (string, error) { return build("oldest", "nats-server-oldest") })
)

// build builds the server of a module.
func build(module, name string) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "atoll-test", name)
	out, err := exec.Command("go", "build", "-C", module, "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build nats-server: %w: %s", err, out)
	}
	return path, err
}

// natsServer is a NATS server that is a process of its own.
type natsServer struct {
	t    testing.TB
	dir  string
	conf string // its own part of the configuration
	port int
	cmd  *exec.Cmd

	build func() (string, error)
}

func startServer(t testing.TB, conf ...string) *natsServer {
	t.Helper()
	return startBuilt(t, buildServer, conf...)
}

// startBuilt starts a server of another version.
func startBuilt(t testing.TB, build func() (string, error), conf ...string) *natsServer {
	t.Helper()
	s := &natsServer{t: t, dir: t.TempDir(), conf: "max_payload: 8MB\n", build: build}
	if len(conf) > 0 {
		s.conf = conf[0]
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *natsServer) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.port) }

// start starts the server; after kill, with what it had, where it was.
func (s *natsServer) start() {
	s.t.Helper()
	path, err := s.build()
	if err != nil {
		s.t.Fatal(err)
	}
	port := "-1"
	if s.port != 0 {
		port = fmt.Sprint(s.port)
	}
	conf := filepath.Join(s.dir, "nats.conf")
	text := fmt.Sprintf("listen: 127.0.0.1:%s\njetstream {store_dir: %q}\n%s", port, filepath.Join(s.dir, "js"), s.conf)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(path, "-c", conf)
	logs, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "Listening for client connections on "); ok {
			a, err := net.ResolveTCPAddr("tcp", addr)
			if err != nil {
				s.t.Fatal(err)
			}
			s.port = a.Port
		}
		if strings.Contains(lines.Text(), "Server is ready") {
			go func() {
				for lines.Scan() {
				}
			}()
			return
		}
	}
	s.t.Fatal("nats-server did not start")
}

func (s *natsServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

const childDir = "ATOLL_BUS_TEST_CHILD"

// child is a process that appends to a bus until it is killed, and says what
// has been acknowledged.
func child(dir string) {
	b, err := Open(context.Background(), Config{Dir: dir, Name: "child", Log: discard})
	if err != nil {
		panic(err)
	}
	seq := int64(2)
	for i := 0; ; i++ {
		id := fmt.Sprintf("trc_%d", i)
		if err := b.log.Append(id, []execution.Event{{Seq: 2, Stream: execution.Stdout, Data: []byte(id)}}); err != nil {
			panic(err)
		}
		if err := b.log.Finish(context.Background(), execution.Result{TraceID: id, LastSeq: 2}); err != nil {
			panic(err)
		}
		if err := b.log.Append("trc_long", []execution.Event{{Seq: seq, Stream: execution.Stdout, Data: make([]byte, 10_000)}}); err != nil {
			panic(err)
		}
		seq++
		fmt.Println(i, b.log.Stored("trc_long"))
	}
}

// What was acknowledged is there after the end of the process with the server.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	runs, last := -1, int64(0)
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		sub := filepath.Join(dir, fmt.Sprint(round))
		cmd.Env = append(os.Environ(), childDir+"="+sub)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		runs, last = -1, 0
		var timer *time.Timer
		for lines.Scan() {
			if _, _ = fmt.Sscan(lines.Text(), &runs, &last); runs >= 10 && timer == nil { // however long it took to begin
				timer = time.AfterFunc(time.Duration(100+300*round)*time.Millisecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if timer != nil {
			timer.Stop()
		}
		_ = cmd.Wait()
		if runs < 10 {
			t.Fatalf("only %d runs", runs)
		}
		b := open(t, Config{Dir: sub, Name: "gw"})
		ctx := deadline(t, 30*time.Second)
		if have, err := b.Log().Last(ctx, "trc_long"); err != nil || have < last {
			t.Errorf("event %d of %d, %v", have, last, err)
		}
		got := make(chan string, runs+10)
		rctx, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() {
			ended <- b.Results(rctx, func(_ context.Context, r execution.Result) error {
				got <- r.TraceID
				return nil
			})
		}()
		seen := map[string]bool{}
		for len(seen) < runs+1 {
			select {
			case id := <-got:
				seen[id] = true
			case <-ctx.Done():
				t.Fatalf("%d of %d results", len(seen), runs+1)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for i := range runs + 1 {
			id := fmt.Sprintf("trc_%d", i)
			if i%20 != 0 && i < runs-5 {
				continue
			}
			events, r, err := read(ctx, b, id, 0)
			if err != nil || len(events) != 1 || string(events[0].Data) != id || r.LastSeq != 2 {
				t.Fatalf("run %d of %d: %+v, %+v, %v", i, runs, events, r, err)
			}
		}
		t.Logf("%d runs and %d events were there", runs+1, last)
	}
}

func TestAURLThatIsNoneIsNotShown(t *testing.T) {
	for _, bad := range []string{"nats://user:geheim@[::1", "nats://user:geheim@127.0.0.1:x", "nats://user:geheim%zz@h:1", "user:geheim@h h:4222"} {
		b, err := Open(t.Context(), Config{URL: bad, Name: "x", Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler), MaxBytes: 1 << 30, MaxRunBytes: 1 << 20, MaxAge: time.Hour})
		if err == nil {
			b.Close()
			t.Errorf("%q was taken for a URL", bad)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}
