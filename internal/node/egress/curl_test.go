package egress

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// curl runs curl inside, with the sandbox's resolv.conf and the C library's
// resolver, and says what it says.
func (r *rig) curl(t *testing.T, args ...string) (string, time.Duration) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+Gateway.String()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `mount --bind "$0" "$(realpath /etc/resolv.conf)" && exec curl -sS --max-time 5 "$@"`
	cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, conf}, args...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	var err error
	began := time.Now()
	r.in(func() { err = cmd.Start() }) // by the thread that is in the namespace
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // what went wrong is in the output
	return out.String(), time.Since(began)
}

func TestCurl(t *testing.T) {
	serveHTTP(t, good+":80", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s from %s", r.Proto, r.Host) }).Start()
	secure := serveHTTP(t, good+":443", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secure") })
	secure.StartTLS()
	r := newRig(t, Config{}, hosts("good.test"))
	for name, at := range map[string]string{"good.test": good, "evil.test": evil} {
		r.zone.set(name, at)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"HTTP/1.1 from good.test", []string{"http://good.test/"}},
		{"HTTP/1.1 from GOOD.test.", []string{"http://GOOD.test./"}},
		{"HTTP/2.0 from good.test", []string{"--http2-prior-knowledge", "http://good.test/"}},
		{"HTTP/1.1 from good.test", []string{"--http2", "http://good.test/"}},
		{"secure", []string{"-k", "https://good.test/"}},
		{"Could not resolve host: evil.test", []string{"http://evil.test/"}},
		{"Could not resolve host: sub.good.test", []string{"https://sub.good.test/"}},
		{"Couldn't connect to server", []string{"http://" + evil + "/"}},
		{"Couldn't connect to server", []string{"http://3405803787/"}}, // the same address
		{"Couldn't connect to server", []string{"http://0313.0.0161.013/"}},
		{"Couldn't connect to server", []string{"http://0xcb.0.0x71.0xb/"}},
		{"refuses this request to " + good, []string{"http://" + good + "/"}},
		{"refuses this request to evil.test", []string{"-H", "Host: evil.test", "http://good.test/"}},
		{"reset by peer", []string{"-k", "--connect-to", "evil.test:443:good.test:443", "https://evil.test/"}},
		{"reset by peer", []string{"-k", "https://" + good + "/"}},
		{"response 403", []string{"-x", "http://good.test:80", "https://evil.test/"}},
		{"refuses this request", []string{"-x", "http://good.test:80", "http://evil.test/"}},
	} {
		got, took := r.curl(t, c.args...)
		if !strings.Contains(got, c.want) || took > 10*time.Second {
			t.Errorf("curl %s said after %s: %q", strings.Join(c.args, " "), took, got)
		}
	}
	r.events.await(t, Event{Protocol: "http", Host: "evil.test", Rule: RuleHTTPHost})
	r.events.await(t, Event{Protocol: "tls", Host: "evil.test", Rule: RuleTLSName})
	r.events.await(t, Event{Protocol: "dns", Host: "evil.test", Rule: RuleHost})
}
