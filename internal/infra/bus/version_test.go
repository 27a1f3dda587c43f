package bus

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
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

func TestNoJetStream(t *testing.T) {
	s := startServer(t, "max_payload: 8MB\naccounts {A {users [{user: a, password: a}]}}\n")
	_, err := Open(deadline(t, 10*time.Second), Config{URL: strings.Replace(s.url(), "nats://", "nats://a:a@", 1), Name: "gw", Log: discard})
	if err == nil || !strings.Contains(err.Error(), "JetStream is not enabled") {
		t.Errorf("got %v", err)
	}
}
