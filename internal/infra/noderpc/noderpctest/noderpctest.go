// Package noderpctest serves sandboxes over connections of this machine, for tests.
package noderpctest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/infra/noderpc"
)

// Authority issues certificates for the machines of a test.
type Authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// NewAuthority returns a new Authority.
func NewAuthority(t *testing.T) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{t: t, key: key, pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// Config returns settings for a machine, as server and as client.
func (a *Authority) Config(name string) *tls.Config {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13,
		RootCAs: a.pool, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// Listen returns a listener of this machine with mutual TLS, and a function that connects to it.
func (a *Authority) Listen(server, client *tls.Config, name string) (net.Listener, func(context.Context) (net.Conn, error)) {
	a.t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		a.t.Fatal(err)
	}
	return l, a.Dial(l, client, name)
}

// Dial returns a function that connects to l, a server of the name, with a client's settings.
func (a *Authority) Dial(l net.Listener, client *tls.Config, name string) func(context.Context) (net.Conn, error) {
	client = client.Clone()
	client.ServerName, client.RootCAs = name, a.pool
	d := &tls.Dialer{Config: client}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", l.Addr().String()) }
}

// Remote returns a client of n over mutual TLS. It works until the end of the test.
func Remote(t *testing.T, n sandbox.Node) *noderpc.Client {
	t.Helper()
	a := NewAuthority(t)
	l, dial := a.Listen(a.Config("machine"), a.Config("gateway"), "machine")
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- noderpc.NewServer(n, log).Serve(ctx, l) }()
	c := noderpc.New(noderpc.Config{Dial: dial, Log: log})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}
