package jobs

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/control/webhook"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// The test binary, started again with these, is a process that can be killed.
const (
	childDatabase = "ATOLL_TEST_JOBS_DATABASE"
	childHook     = "ATOLL_TEST_JOBS_HOOK"
)

// child concludes an execution for each line of its input, says so, and
// delivers webhooks to url, until it is killed. A certificate comes first.
func child(where, url string) {
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	e, err := open(context.Background(), where)
	if err != nil {
		fail(err)
	}
	in := bufio.NewReader(os.Stdin)
	var cert strings.Builder
	for !strings.Contains(cert.String(), "END CERTIFICATE") {
		line, err := in.ReadString('\n')
		if err != nil {
			fail(err)
		}
		cert.WriteString(line)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert.String()))
	hooks, err := webhook.New(webhook.Config{RootCAs: roots, Allow: []string{"127.0.0.0/8"}, MaxOutput: 1 << 20})
	if err != nil {
		fail(err)
	}
	c, err := New(e.config(Config{Deliver: hooks.Deliver, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}))
	if err != nil {
		fail(err)
	}
	if err := c.Start(context.Background()); err != nil {
		fail(err)
	}
	fmt.Println("started")
	for {
		id, err := in.ReadString('\n')
		if err != nil {
			fail(err)
		}
		if err := e.conclude(context.Background(), c, strings.TrimSpace(id), url); err != nil {
			fail(err)
		}
		fmt.Print(id)
	}
}

// process is a child and what it has said.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startChild(t *testing.T, where, url string, cert []byte) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), childDatabase+"="+where, childHook+"="+url)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.in.Write(cert)
	if p.line() != "started" {
		t.Fatal("the child did not start")
	}
	return p
}

func (p *process) line() string {
	p.out.Scan()
	return p.out.Text()
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// A process that is killed at any moment loses no webhook: what it had recorded
// is delivered by the next.
func TestKilled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *engine) {
		const perLife, lives = 25, 6
		var (
			mu      sync.Mutex
			arrived = map[string]int{}
			refused = map[string]bool{}
		)
		receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("webhook-id")
			time.Sleep(rand.N(10 * time.Millisecond)) // the load: so that some are under way when the process dies
			mu.Lock()
			defer mu.Unlock()
			if !refused[id] && rand.N(4) == 0 {
				refused[id] = true
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			arrived[id]++
		}))
		defer receiver.Close()
		cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})

		var recorded []string
		for life := range lives {
			p := startChild(t, e.where, receiver.URL, cert)
			// Some time after one of its records, however slow the machine is.
			var dies *time.Timer
			last := rand.N(perLife)
			for i := range perLife {
				id := fmt.Sprintf("trc_%d_%d", life, i)
				fmt.Fprintln(p.in, id)
				if p.line() != id {
					break
				}
				recorded = append(recorded, id)
				if i == last {
					dies = time.AfterFunc(rand.N(30*time.Millisecond), func() { p.cmd.Process.Kill() })
				}
			}
			if dies != nil {
				dies.Stop()
			}
			p.kill()
		}
		last := startChild(t, e.where, receiver.URL, cert)
		defer last.kill()

		left := recorded
		atolltest.Until(t, patience, "all webhooks are delivered", func() bool {
			for len(left) > 0 && e.status(t, left[0]) == execution.WebhookDelivered {
				left = left[1:]
			}
			return len(left) == 0
		})
		mu.Lock()
		defer mu.Unlock()
		twice := 0
		for _, id := range recorded {
			switch n := arrived[webhook.MessageID(id)]; {
			case n == 0:
				t.Errorf("%s never arrived", id)
			case n > 1:
				twice++
			}
		}
		if len(recorded) < lives {
			t.Errorf("only %d recorded", len(recorded))
		}
		t.Logf("%d recorded in %d lives, %d arrived more than once", len(recorded), lives, twice)
	})
}
