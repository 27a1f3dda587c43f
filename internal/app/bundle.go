package app

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// maxBundle limits a stored bundle of certificates, because each sandbox gets a copy. The bundles of
// Linux distributions have about 230 KiB.
const maxBundle = 1 << 20

// readBundle reads a bundle to store. "" is a bundle without certificates.
func readBundle(path string) (value, error) {
	if path == "" {
		return value{}, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return value{}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return value{}, fault.Wrap(fault.Invalid, err, fmt.Sprintf("cannot read the file: %v; name a PEM file with certificates on this machine", err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil {
		return value{}, fault.Wrap(fault.Invalid, err, fmt.Sprintf("cannot read the file: %v; name a PEM file with certificates on this machine", err))
	}
	if len(data) > maxBundle {
		return value{}, fault.New(fault.Invalid, "%s has more than %s; remove certificates that images already trust", path, runtime.FormatBytes(maxBundle))
	}
	bundle, n, err := certificates(data)
	if err != nil {
		return value{}, fault.New(fault.Invalid, "%s %v", path, err)
	}
	sum := sha256.Sum256(bundle)
	noun := "certificates"
	if n == 1 {
		noun = "certificate"
	}
	return value{text: fmt.Sprintf("%s (%d %s, SHA-256 %s)", path, n, noun, hex.EncodeToString(sum[:8])), content: bundle}, nil
}

// certificates returns the PEM certificates of a file without the text between them, and their
// number. The error continues a sentence that begins with the path.
func certificates(data []byte) (bundle []byte, n int, err error) {
	other := ""
	for rest := data; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		switch {
		case block == nil && bytes.Contains(rest, []byte("-----BEGIN ")):
			return nil, 0, fmt.Errorf("is damaged after %d certificates: a PEM block is cut off or not base64; copy the file again", n)
		case block == nil && n > 0:
			return bundle, n, nil
		case block == nil && other != "":
			return nil, 0, fmt.Errorf("holds no certificate, only a block of type %q; name a file with certificates", other)
		case block == nil:
			return nil, 0, errors.New("is not in PEM form: it has no line '-----BEGIN CERTIFICATE-----'; convert a DER file with 'openssl x509 -inform der -in FILE -out FILE.pem'")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, 0, errors.New("holds a private key, which does not belong in a bundle; name a file with certificates alone")
		case block.Type != "CERTIFICATE":
			other = block.Type
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, 0, fmt.Errorf("is damaged: certificate %d cannot be parsed (%w); remove or replace it", n+1, err)
		}
		n++
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
}
