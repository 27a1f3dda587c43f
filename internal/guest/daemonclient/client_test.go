package daemonclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
	"github.com/atoll-run/atoll/internal/guest/daemonclient/clienttest"
)

func TestMain(m *testing.M) { os.Exit(clienttest.Main(m)) }

// result is all that a process has said.
type result struct {
	process.Exit
	out     [4]string
	dropped int64
}

// all reads an output to its end.
func all(t testing.TB, o process.Output) (r result) {
	t.Helper()
	var text [4]strings.Builder
	for {
		c, err := o.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text[c.Stream].Write(c.Data)
		r.dropped += c.Dropped
	}
	r.Exit = o.Exit()
	for i := range text {
		r.out[i] = text[i].String()
	}
	return r
}

func shell(text string) process.Spec {
	return process.Spec{Shell: text, Env: clienttest.Env, Timeout: 30 * time.Second, Lossless: true}
}

// run runs a shell command.
func run(t testing.TB, c *daemonclient.Client, text string) result {
	t.Helper()
	o, err := c.Run(t.Context(), shell(text))
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return all(t, o)
}

func TestFirst(t *testing.T) {
	s := clienttest.New(t)
	c := s.Dial(t)
	got := run(t, c, "echo out; echo err >&2; id -u; pwd; exit 3")
	if got.Code != 3 || got.out[process.Stdout] != "out\n1000\n/home/user\n" || got.out[process.Stderr] != "err\n" {
		t.Errorf("got %+v", got)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	size, err := c.Create(t.Context(), "/home/user/a/b/c", file.CreateOptions{}, bytes.NewReader(data))
	if err != nil || size != int64(len(data)) {
		t.Fatal(size, err)
	}
	info, r, err := c.Read(t.Context(), "/home/user/a/b/c", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(back, data) || info.Size != int64(len(data)) || info.UID != 1000 {
		t.Errorf("read %d bytes of %+v: %v", len(back), info, err)
	}
	p, err := c.Start(t.Context(), shell("echo started; read x; echo $x"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.Follow(t.Context(), p.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := all(t, o); got.out[process.Stdout] != "started\n\n" || got.Code != 0 {
		t.Errorf("got %+v", got)
	}
	if err := c.Forget(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Stat(t.Context(), "/"); !errors.Is(err, process.ErrGone) {
		t.Errorf("after Close: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again, err := daemonclient.Dial(ctx, s.Meeting, s.Cue)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Instance() != c.Instance() {
		t.Error("there is another guest daemon")
	}
	if got := run(t, again, "cat a/b/c | wc -c"); got.out[process.Stdout] != "1600000\n" {
		t.Errorf("got %+v", got)
	}
}
