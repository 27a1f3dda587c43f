// Package tlscert serves TLS with a certificate from files, which may be renewed
// while the server runs.
package tlscert

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Config names the files, both PEM.
type Config struct {
	Cert string // the certificate, and after it its chain
	Key  string // its private key
	Log  *slog.Logger
}

// every is the least time between two looks at the files. A new connection triggers the
// look, so that an idle server does no work.
const every = time.Second

// Files is a certificate and its key. It is safe for concurrent use.
type Files struct {
	config Config
	now    func() time.Time

	mu      sync.Mutex
	current *tls.Certificate // guarded by mu, as are the next
	seen    versions         // what current was made of
	unfit   versions         // what no certificate could be made of, and was told so
	looked  time.Time
}

// versions tells one content of both files from another; nil stands for a file
// that is not there. Files that are replaced by renaming, or by turning a
// symbolic link, are other files.
type versions [2]os.FileInfo

func (v versions) equal(w versions) bool {
	for i := range v {
		if v[i] == nil || w[i] == nil {
			if v[i] != w[i] {
				return false
			}
		} else if !os.SameFile(v[i], w[i]) || !v[i].ModTime().Equal(w[i].ModTime()) || v[i].Size() != w[i].Size() {
			return false
		}
	}
	return true
}

// Open reads the certificate. It fails when the files do not make one.
func Open(c Config) (*Files, error) {
	f := &Files{config: c, now: time.Now}
	seen, err := f.look()
	if err != nil {
		return nil, err
	}
	cert, err := f.read()
	if err != nil {
		return nil, err
	}
	f.current, f.seen, f.looked = cert, seen, f.now()
	f.say(cert, false)
	return f, nil
}

// Config returns a server's configuration with the certificate of the moment,
// for HTTP/2 and HTTP/1.1, TLS 1.2 or newer.
func (f *Files) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.Certificate(), nil },
	}
}

// Listen puts TLS over a listener.
func (f *Files) Listen(ln net.Listener) net.Listener { return tls.NewListener(ln, f.Config()) }

// Expires returns when the certificate of the moment does.
func (f *Files) Expires() time.Time { return f.Certificate().Leaf.NotAfter }

// Certificate returns the certificate of the moment: the files', or while they
// do not make one, the last that they made.
func (f *Files) Certificate() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.looked) < every && !now.Before(f.looked) {
		return f.current
	}
	f.looked = now
	seen, err := f.look()
	if err == nil {
		if seen.equal(f.seen) {
			return f.current
		}
		var cert *tls.Certificate
		if cert, err = f.read(); err == nil {
			f.current, f.seen, f.unfit = cert, seen, versions{}
			f.say(cert, true)
			return cert
		}
	}
	// Half of a renewal, most likely. It is tried again, but said once.
	if f.unfit == (versions{}) || !seen.equal(f.unfit) {
		f.unfit = seen
		f.config.Log.Error("cannot use the renewed certificate; keeping the previous one", "cert", f.config.Cert, "key", f.config.Key, "error", err)
	}
	return f.current
}

// look takes the versions of both files, before they are read: a change while
// they are is then seen the next time.
func (f *Files) look() (seen versions, err error) {
	for i, path := range []string{f.config.Cert, f.config.Key} {
		info, statErr := os.Stat(path)
		if statErr != nil {
			err = errors.Join(err, statErr)
			continue
		}
		seen[i] = info
	}
	return seen, err
}

func (f *Files) read() (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.config.Cert, f.config.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.config.Cert, f.config.Key, err)
	}
	return &cert, nil
}

func (f *Files) say(cert *tls.Certificate, renewed bool) {
	log := f.config.Log.With("cert", f.config.Cert, "names", cert.Leaf.DNSNames, "expires", cert.Leaf.NotAfter, "renewed", renewed)
	if f.now().After(cert.Leaf.NotAfter) {
		log.Warn("serving a certificate that has expired")
		return
	}
	log.Info("serving a certificate")
}
