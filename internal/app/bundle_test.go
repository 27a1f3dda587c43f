package app

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// testCertificate is a certificate, DER, with its key.
func testCertificate(t *testing.T) (der, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, private.Public(), private); err != nil {
		t.Fatal(err)
	}
	if key, err = x509.MarshalPKCS8PrivateKey(private); err != nil {
		t.Fatal(err)
	}
	return der, key
}

func TestReadBundle(t *testing.T) {
	der, key := testCertificate(t)
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	one := block("CERTIFICATE", der)
	path := filepath.Join(t.TempDir(), "ca.pem")
	for name, c := range map[string]struct{ text, want string }{
		"a certificate":             {one, "(1 certificate, SHA-256 "},
		"text between certificates": {"# Soci\xe9t\xe9\n" + one + "# another\n" + one, "(2 certificates, SHA-256 "},
		"another kind between them": {one + block("X509 CRL", der) + one, "(2 certificates, SHA-256 "},
		"nothing":                   {"", "is not in PEM form"},
		"text":                      {"my certificate\n", "is not in PEM form"},
		"DER":                       {string(der), "convert a DER file with 'openssl x509 -inform der"},
		"no certificate":            {block("X509 CRL", der), `holds no certificate, only a block of type "X509 CRL"`},
		"a private key":             {one + block("PRIVATE KEY", key), "holds a private key"},
		"a part":                    {one + one[:len(one)/2], "is damaged after 1 certificates"},
		"a broken certificate":      {one + block("CERTIFICATE", der[:len(der)-4]), "certificate 2 cannot be parsed"},
		"too much":                  {one + strings.Repeat("#", maxBundle), "has more than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := readBundle(path)
			if strings.HasPrefix(c.want, "(") {
				if err != nil || !strings.HasPrefix(v.text, path+" "+c.want) || !bytes.Equal(v.content, []byte(strings.Repeat(one, strings.Count(c.text, "BEGIN CERTIFICATE")))) {
					t.Errorf("got %q, %q, %v", v.text, v.content, err)
				}
				return
			}
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, missing := range []string{path, t.TempDir()} {
		if _, err := readBundle(missing); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "cannot read the file: ") || !strings.Contains(err.Error(), missing) {
			t.Errorf("%s: got %v", missing, err)
		}
	}
	if v, err := readBundle(""); err != nil || v.text != "" || v.content != nil {
		t.Errorf("no file: %+v, %v", v, err)
	}
}

// TestWithSystem checks that a bundle without certificates is an error, even if its file is empty.
func TestWithSystem(t *testing.T) {
	der, _ := testCertificate(t)
	if pool, err := withSystem(nil); pool != nil || err != nil {
		t.Errorf("no bundle: %v, %v", pool, err)
	}
	if pool, err := withSystem(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); pool == nil || err != nil {
		t.Errorf("a certificate: %v, %v", pool, err)
	}
	for _, bundle := range []string{"", "text"} {
		if _, err := withSystem([]byte(bundle)); err == nil {
			t.Errorf("%q is accepted", bundle)
		}
	}
}
