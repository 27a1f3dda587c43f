package bus

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

func TestAtLeast(t *testing.T) {
	for have, want := range map[string]bool{
		"2.11.0": true, "2.11.9": true, "2.12.0-RC.1": true, "3.0.0": true, "2.11.0-dev": true,
		"2.10.27": false, "2.9.25": false, "1.99.99": false, "": false, "2.11": false, "2.x.0": false,
	} {
		if atLeast(have, OldestNATS) != want {
			t.Errorf("%q: %v", have, !want)
		}
	}
}

// fakeNATS is a server that says what it is, and answers pings only.
func fakeNATS(t *testing.T, info string) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprintf(c, "INFO %s\r\n", info)
				for lines := bufio.NewScanner(c); lines.Scan(); {
					if lines.Text() == "PING" {
						fmt.Fprint(c, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestOldServersAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ info, want string }{
		"2.9":        {`"version":"2.9.25","headers":true`, `NATS server "old" has version "2.9.25"; Atoll needs 2.11.0 or later`},
		"2.10":       {`"version":"2.10.27","headers":true`, `has version "2.10.27"; Atoll needs 2.11.0`},
		"no version": {`"headers":true`, `has version ""`},
		"no headers": {`"version":"2.11.0"`, "no_header_support"},
	} {
		t.Run(name, func(t *testing.T) {
			url := fakeNATS(t, `{"server_id":"X","server_name":"old","proto":1,"max_payload":8388608,`+c.info+`}`)
			_, err := Open(deadline(t, 10*time.Second), Config{URL: url, Name: "gw", Log: discard})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOneConnectionToAnOldServer checks that Ready fails if either connection reconnects to an old
// server.
func TestOneConnectionToAnOldServer(t *testing.T) {
	old, err := nats.Connect(fakeNATS(t, `{"server_id":"X","server_name":"old","proto":1,"max_payload":8388608,"version":"2.10.27","headers":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	b := embedded(t)
	for _, nc := range []*nats.Conn{b.ctl, b.data} {
		nc.Opts.ReconnectedCB(old)
		for _, other := range []*nats.Conn{b.ctl, b.data} {
			if other != nc {
				other.Opts.ReconnectedCB(other)
			}
		}
		if err := b.Ready(); err == nil || !strings.Contains(err.Error(), "2.10.27") {
			t.Errorf("got %v", err)
		}
		nc.Opts.ReconnectedCB(nc)
		if err := b.Ready(); err != nil {
			t.Error(err)
		}
	}
}

func TestNoJetStream(t *testing.T) {
	s := startServer(t, "max_payload: 8MB\naccounts {A {users [{user: a, password: a}]}}\n")
	_, err := Open(deadline(t, 10*time.Second), Config{URL: strings.Replace(s.url(), "nats://", "nats://a:a@", 1), Name: "gw", Log: discard})
	if err == nil || !strings.Contains(err.Error(), "JetStream is not enabled") {
		t.Errorf("got %v", err)
	}
}

// The oldest supported server runs an execution, and keeps its output when it is killed.
func TestOldestServer(t *testing.T) {
	s := startBuilt(t, buildOldest)
	b := open(t, Config{URL: s.url(), Name: "gw", Installation: "ins_1"})
	if have := b.ctl.ConnectedServerVersion(); have != OldestNATS {
		t.Fatalf("the server has version %s", have)
	}
	testOneRun(t, b)
	b = open(t, Config{URL: s.url(), Name: "gw", Installation: "ins_2"}) // without the executor of the first
	x := serve(t, b, "x2", 1)
	ctx := deadline(t, 30*time.Second)
	turn := job("trc_9")
	turn.Turn = "turn"
	if err := b.Runner().Start(ctx, turn); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3 * readMessages) { // more than one answer has
		if err := b.Log().Append("trc_9", []execution.Event{{Seq: i + 2, Stream: execution.Stdout, Data: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
		if err := b.log.settled(ctx, "trc_9", i+2); err != nil { // a message for each event
			t.Fatal(err)
		}
	}
	s.kill()
	s.start()
	atolltest.Until(t, 20*time.Second, "the bus is back", func() bool { return b.Ready() == nil })
	end := done("trc_9")
	end.LastSeq = 3*readMessages + 1
	if err := x.end(ctx, end); err != nil {
		t.Fatal(err)
	}
	if events, r, err := read(ctx, b, "trc_9", 0); err != nil || len(events) != 3*readMessages || r.OutputTruncated {
		t.Errorf("%d events, %+v, %v", len(events), r, err)
	}
}
