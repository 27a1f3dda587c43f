package nodecert

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// connect returns the errors of both ends of a connection from one server to another, and closes it.
func connect(t *testing.T, client, server Files, host string) error {
	t.Helper()
	accepts, err := server.Server(host)
	if err != nil {
		t.Fatal(err)
	}
	dials, err := client.Client(host)
	if err != nil {
		t.Fatal(err)
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	failed := make(chan error, 1)
	go func() {
		c := tls.Server(b, accepts)
		failed <- errors.Join(c.Handshake(), b.Close())
	}()
	c := tls.Client(a, dials)
	err = c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1)) // with TLS 1.3 the server refuses a client after the handshake
		if err != nil && !strings.Contains(err.Error(), "tls:") {
			err = nil // the other end has closed
		}
	}
	a.Close()
	return errors.Join(err, <-failed)
}

func issue(t *testing.T, dir, host string) Files {
	t.Helper()
	return issueFor(t, dir, host, All)
}

func issueFor(t *testing.T, dir, host string, role Role) Files {
	t.Helper()
	cert, key, err := Issue(dir, host, role, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return Files{cert, key, filepath.Join(dir, CAFile)}
}

func TestServersOfOneAuthority(t *testing.T) {
	dir := t.TempDir()
	one, two := issue(t, dir, "10.0.0.1"), issue(t, dir, "two.internal")
	issue(t, dir, "ca") // its files are not those of the authority
	if err := connect(t, one, two, "two.internal"); err != nil {
		t.Errorf("from one to two: %v", err)
	}
	if err := connect(t, two, one, "10.0.0.1"); err != nil {
		t.Errorf("from two to one: %v", err)
	}
	for _, name := range []string{"ca.key", "10.0.0.1-key.pem"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}

	again := issue(t, dir, "10.0.0.1") // renewed
	if err := connect(t, again, two, "two.internal"); err != nil {
		t.Errorf("with a renewed certificate: %v", err)
	}

	stranger := issue(t, t.TempDir(), "10.0.0.1")
	stranger.CA = one.CA // it knows the authority and has no certificate of it
	if err := connect(t, stranger, two, "two.internal"); err == nil {
		t.Error("a client of another authority is accepted")
	}
	if err := connect(t, one, Files{stranger.Cert, stranger.Key, one.CA}, "10.0.0.1"); err == nil {
		t.Error("a server of another authority is accepted")
	}
	if _, err := two.Server("10.0.0.2"); err == nil || !strings.Contains(err.Error(), "node_cert") {
		t.Errorf("a certificate of another host: %v", err)
	}
}

// TestRoles checks that gateways connect to executors, and that no other connection between them works.
func TestRoles(t *testing.T) {
	dir := t.TempDir()
	const host = "10.0.0.1"
	of := map[Role]Files{}
	for _, role := range []Role{All, Gateway, Executor} {
		of[role] = issueFor(t, dir, host, role)
	}
	for client, from := range of {
		for server, to := range of {
			works := client != Executor && server != Gateway
			if err := connect(t, from, to, host); (err == nil) != works {
				t.Errorf("from %s to %s: %v", client, server, err)
			}
		}
	}
	if _, _, err := Issue(dir, host, "other", time.Hour); err == nil {
		t.Error("an unknown role has a certificate")
	}
}

func TestIssueRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, host := range []string{"", "../x", "a/b", "-a", "a b", "10.0.0.1:8443", strings.Repeat("a", 300)} {
		if _, _, err := Issue(dir, host, All, time.Hour); err == nil {
			t.Errorf("host %q is accepted", host)
		}
	}
	issue(t, t.TempDir(), "2001:db8::")
	if _, _, err := Issue(dir, "a", All, 0); err == nil {
		t.Error("a certificate without a life is made")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("refused, it leaves %v, %v", left, err)
	}
	issue(t, dir, "a")
	if _, _, err := Issue(dir, "a", All, caLife); err == nil || !strings.Contains(err.Error(), "--life") {
		t.Errorf("a certificate that outlives its authority: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Issue(dir, "b", All, time.Hour); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without the authority's key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, caKeyFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Issue(dir, "b", All, time.Hour); err == nil {
		t.Error("a broken authority is used")
	}
}
