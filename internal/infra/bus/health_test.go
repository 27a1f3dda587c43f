package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// An embedded bus whose disk was full says so, and stores messages again once there is space.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b := open(t, Config{Dir: filepath.Join(disk, "nats"), Name: "gw", probeEvery: 100 * time.Millisecond, probeTime: time.Second})
	ctx := deadline(t, time.Minute)
	store := func(id string) error {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := b.Log().Append(id, []execution.Event{{Seq: 2, Stream: execution.Stdout, Data: make([]byte, execution.MaxChunk)}}); err != nil {
			return err
		}
		return b.Log().Finish(try, execution.Result{TraceID: id, LastSeq: 2})
	}
	if err := store("trc_before"); err != nil {
		t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(disk, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	for chunk := make([]byte, 1<<16); ; {
		if _, err := ballast.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	atolltest.Until(t, 30*time.Second, "the bus says that it stores nothing", func() bool {
		_ = store("trc_full") // it cannot; a probe is too small for that
		return b.Ready() != nil
	})
	if err := ballast.Truncate(0); err != nil {
		t.Fatal(err)
	}
	atolltest.Until(t, 30*time.Second, "the bus is ready again", func() bool { return b.Ready() == nil })
	if err := store("trc_after"); err != nil {
		t.Errorf("after there was space: %v", err)
	}
	for _, id := range []string{"trc_before", "trc_after"} {
		if _, err := b.Log().Result(ctx, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// An embedded server that could not be restarted is restarted again.
func TestARestartThatFailedIsRepeated(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw", probeEvery: 50 * time.Millisecond, probeTime: time.Second})
	elsewhere := b.cfg
	elsewhere.Dir = "/dev/null/nats"
	if err := b.server.restart(t.Context(), elsewhere); err == nil {
		t.Fatal("it started below a device")
	}
	atolltest.Until(t, 30*time.Second, "the bus is ready again", func() bool { return b.Ready() == nil })
	if err := b.Log().Finish(deadline(t, 10*time.Second), execution.Result{TraceID: "trc_after", LastSeq: 1}); err != nil {
		t.Error(err)
	}
}

// A stream of three replicas that has lost its leader stores nothing, which the bus says.
// Replicas stay as they are when a server starts.
func TestNoLeader(t *testing.T) {
	ports := make([]int, 3)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		l.Close()
	}
	routes := fmt.Sprintf("nats://127.0.0.1:%d, nats://127.0.0.1:%d, nats://127.0.0.1:%d", ports[0], ports[1], ports[2])
	var servers []*natsServer
	var urls []string
	for i, port := range ports {
		s := startServer(t, fmt.Sprintf("max_payload: 8MB\nserver_name: n%d\ncluster {name: c, listen: \"127.0.0.1:%d\", routes: [%s]}\n", i, port, routes))
		servers, urls = append(servers, s), append(urls, s.url())
	}
	ctx := deadline(t, time.Minute)
	cfg := Config{URL: strings.Join(urls, ","), Name: "gw", Installation: "ins_1", Replicas: 3, Log: discard, probeEvery: 100 * time.Millisecond, probeTime: time.Second}
	var b *Bus
	atolltest.Until(t, 30*time.Second, "the cluster has a leader", func() bool {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		var err error
		b, err = Open(try, cfg)
		return err == nil
	})
	defer b.Close()
	cfg.Replicas, cfg.Name = 0, "gw2"
	again := open(t, cfg)
	for _, name := range []string{b.names.results, b.names.outputs, "KV_" + b.names.turns} {
		stream, err := again.js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if n := stream.CachedInfo().Config.Replicas; n != 3 {
			t.Errorf("stream %s has %d replicas", name, n)
		}
	}
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	servers[1].kill()
	servers[2].kill()
	atolltest.Until(t, 30*time.Second, "the bus says that it stores nothing", func() bool { return b.Ready() != nil && b.ctl.IsConnected() && b.data.IsConnected() })
	servers[1].start()
	atolltest.Until(t, 30*time.Second, "the bus is ready again", func() bool { return b.Ready() == nil })
}
