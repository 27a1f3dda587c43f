package tlscert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// makePair returns a certificate of its own and its key.
func makePair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"atoll.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Duration(serial) * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// fixture is certificate files whose clock is moved by hand.
type fixture struct {
	*Files
	cert, key string
	log       strings.Builder
	time      time.Time
}

func open(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key"), time: time.Now()}
	f.renew(t, 1)
	files, err := Open(Config{Cert: f.cert, Key: f.key, Log: slog.New(slog.NewTextHandler(&f.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	f.Files = files
	f.now = func() time.Time { return f.time }
	f.looked = f.time
	return f
}

func (f *fixture) renew(t *testing.T, serial int64) {
	t.Helper()
	cert, key := makePair(t, serial)
	write(t, f.cert, cert)
	write(t, f.key, key)
}

// serial is that of the certificate given out when a moment has passed.
func (f *fixture) serial() int64 {
	f.time = f.time.Add(every)
	return f.Certificate().Leaf.SerialNumber.Int64()
}

func TestRenewal(t *testing.T) {
	f := open(t)
	if got := f.serial(); got != 1 {
		t.Fatalf("the first certificate is %d", got)
	}
	f.renew(t, 2)
	if got := f.Certificate().Leaf.SerialNumber.Int64(); got != 1 {
		t.Errorf("the files were looked at again within a moment: %d", got)
	}
	if got := f.serial(); got != 2 {
		t.Errorf("after the renewal it is %d", got)
	}
	if left := time.Until(f.Expires()); left < time.Hour || left > 2*time.Hour {
		t.Errorf("it expires in %s", left)
	}
	if n := strings.Count(f.log.String(), "renewed=true"); n != 1 {
		t.Errorf("the renewal was said %d times", n)
	}
}

// A renewal in steps, as tools do it, is never served by half.
func TestRenewalInSteps(t *testing.T) {
	f := open(t)
	cert, key := makePair(t, 2)
	steps := []func(){
		func() { write(t, f.cert, cert[:len(cert)/2]) },
		func() { write(t, f.cert, cert) }, // with the old key
		func() { _ = os.Remove(f.key) },
	}
	for i, step := range steps {
		step()
		for range 3 {
			if got := f.serial(); got != 1 {
				t.Errorf("after step %d the certificate is %d", i, got)
			}
		}
		if n := strings.Count(f.log.String(), "cannot use the renewed certificate"); n != i+1 {
			t.Errorf("after step %d it was said %d times that it cannot be used", i, n)
		}
	}
	write(t, f.key, key)
	if got := f.serial(); got != 2 {
		t.Errorf("after the last step the certificate is %d", got)
	}
}

// Kubernetes turns a link to a folder; the files' names stay.
func TestRenewalByLink(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		folder := filepath.Join(dir, "v"+string(rune('1'+i)))
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		cert, key := makePair(t, int64(i+1))
		write(t, filepath.Join(folder, "tls.crt"), cert)
		write(t, filepath.Join(folder, "tls.key"), key)
	}
	link := filepath.Join(dir, "current")
	if err := os.Symlink("v1", link); err != nil {
		t.Fatal(err)
	}
	f, err := Open(Config{Cert: filepath.Join(link, "tls.crt"), Key: filepath.Join(link, "tls.key"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("v2", link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	f.looked = time.Time{}
	if got := f.Certificate().Leaf.SerialNumber.Int64(); got != 2 {
		t.Errorf("the certificate is %d", got)
	}
}

func TestRefusals(t *testing.T) {
	f := open(t)
	otherCert, _ := makePair(t, 3)
	other := filepath.Join(t.TempDir(), "other.crt")
	write(t, other, otherCert)
	for _, c := range []Config{{Cert: f.cert + "x", Key: f.key}, {Cert: f.cert, Key: f.cert}, {Cert: other, Key: f.key}} {
		c.Log = slog.New(slog.DiscardHandler)
		if _, err := Open(c); err == nil {
			t.Errorf("%s with %s was taken", c.Cert, c.Key)
		} else if strings.Contains(err.Error(), "PRIVATE KEY-----") {
			t.Errorf("the error has the key: %v", err)
		}
	}
}

// A real server, a real client, and a renewal between two connections.
func TestServing(t *testing.T) {
	f := open(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = server.Serve(f.Listen(ln)) }()
	defer server.Close()

	get := func(config *tls.Config) (*http.Response, error) {
		pem, err := os.ReadFile(f.cert)
		if err != nil {
			t.Fatal(err)
		}
		config.RootCAs, config.ServerName = x509.NewCertPool(), "atoll.test"
		config.RootCAs.AppendCertsFromPEM(pem)
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
		return client.Get("https://" + ln.Addr().String())
	}
	for serial := int64(1); serial <= 2; serial++ {
		if serial == 2 {
			f.renew(t, 2)
			f.mu.Lock()
			f.looked = time.Time{}
			f.mu.Unlock()
		}
		res, err := get(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.TLS.PeerCertificates[0].SerialNumber.Int64(); got != serial || res.ProtoMajor != 2 {
			t.Errorf("certificate %d over %s, want %d over HTTP/2", got, res.Proto, serial)
		}
	}
	res, err := http.Get("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != http.StatusBadRequest || string(text) != "Client sent an HTTP request to an HTTPS server.\n" {
		t.Errorf("HTTP returns %d %q, %v", res.StatusCode, text, err)
	}
	if _, err := get(&tls.Config{MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // it is what must be refused
		t.Error("TLS 1.1 was spoken")
	}
}
