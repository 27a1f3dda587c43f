package bus

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// certificate writes a certificate for 127.0.0.1, and its key, that is its own
// authority.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", raw)
}

// A server that asks for a certificate, a user and a password gets them, and
// no client without them gets in.
func TestGuardedServer(t *testing.T) {
	cert, key := certificate(t, t.TempDir())
	s := startServer(t, fmt.Sprintf(`
tls {cert_file: %q, key_file: %q, ca_file: %q, verify: true}
max_payload: 8MB
authorization {user: atoll, password: secret}
`, cert, key, cert))
	url := strings.Replace(s.url(), "nats://", "tls://atoll:secret@", 1)
	b := open(t, Config{URL: url, CA: cert, Cert: cert, Key: key, Name: "gw"})
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
	for what, cfg := range map[string]Config{
		"no authority":   {URL: url, Cert: cert, Key: key},
		"no certificate": {URL: url, CA: cert},
		"wrong password": {URL: strings.Replace(url, "secret", "guess", 1), CA: cert, Cert: cert, Key: key},
		"no such server": {URL: "nats://127.0.0.1:1"},
	} {
		cfg.Name, cfg.Log = "gw", discard
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		if b, err := Open(ctx, cfg); err == nil {
			t.Errorf("%s: opened", what)
			_ = b.Close()
		}
		cancel()
	}
}

func TestSmallPayload(t *testing.T) {
	s := startServer(t, "max_payload: 1MB\n")
	_, err := Open(deadline(t, 10*time.Second), Config{URL: s.url(), Name: "gw", Log: discard})
	if err == nil || !strings.Contains(err.Error(), "max_payload") {
		t.Errorf("got %v", err)
	}
}

type spanKey struct{}

// The trace context of a request is there where its job is started and where
// its result is recorded.
func TestTraceContext(t *testing.T) {
	b := open(t, Config{Dir: t.TempDir(), Name: "gw",
		Inject: func(ctx context.Context) map[string]string {
			span, _ := ctx.Value(spanKey{}).(string)
			return map[string]string{"traceparent": span}
		},
		Extract: func(ctx context.Context, h map[string]string) context.Context {
			return context.WithValue(ctx, spanKey{}, h["traceparent"])
		},
	})
	ctx := context.WithValue(deadline(t, 10*time.Second), spanKey{}, "span-1")
	h := serve(t, b, "x1", 1)
	started := make(chan any, 1)
	h.starter = func(ctx context.Context, _ execution.Job) error {
		started <- ctx.Value(spanKey{})
		return nil
	}
	recorded := make(chan any, 1)
	results(t, b, func(ctx context.Context, _ execution.Result) error {
		recorded <- ctx.Value(spanKey{})
		return nil
	})
	if err := b.Runner().Start(ctx, job("trc_1")); err != nil {
		t.Fatal(err)
	}
	if err := h.end(ctx, done("trc_1")); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]chan any{"started": started, "recorded": recorded} {
		if span := <-c; span != "span-1" {
			t.Errorf("%s in %v", what, span)
		}
	}
}
