// Package nodecert issues and loads the certificates of connections between servers.
//
// A folder holds a certificate authority. Keep it offline: the holder of its key can use every
// sandbox of the installation. The certificate of a gateway only opens connections, and the certificate
// of an executor only accepts them, so an executor cannot use the sandboxes of another one.
package nodecert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Names of the files in an authority's folder.
const (
	CAFile    = "ca.pem"
	caKeyFile = "ca.key"
)

const (
	caLife = 10 * 365 * 24 * time.Hour
	// skew is how far the clocks of servers may differ.
	skew = 5 * time.Minute
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?$`)

// Role is the role of a server with a certificate.
type Role string

// The roles of servers.
const (
	All      Role = "all"
	Gateway  Role = "gateway"
	Executor Role = "executor"
)

// usages returns the permitted uses of a role's certificate; nil for an unknown role.
func (r Role) usages() []x509.ExtKeyUsage {
	switch r {
	case All:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	case Gateway:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	case Executor:
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return nil
}

// Issue writes a certificate for a host, a DNS name or IP address, and its private key into an
// authority's folder: HOST-cert.pem and HOST-key.pem for the role All, HOST-ROLE-cert.pem and
// HOST-ROLE-key.pem for others. It creates the authority if the folder has none, and replaces an earlier
// certificate of the host and role.
func Issue(dir, host string, role Role, life time.Duration) (cert, key string, err error) {
	if role.usages() == nil {
		return "", "", fmt.Errorf("%q is not a role; the roles are %s, %s and %s", role, All, Gateway, Executor)
	}
	ip := net.ParseIP(host)
	if ip == nil && !namePattern.MatchString(host) {
		return "", "", fmt.Errorf("%q is neither a DNS name nor an IP address", host)
	}
	if life <= 0 || life > caLife {
		return "", "", fmt.Errorf("a certificate is valid for at most %d days", int(caLife.Hours()/24))
	}
	ca, signer, err := authority(dir)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: role.usages(),
	}
	if ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	certPEM, keyPEM, err := sign(template, ca, signer, life)
	if err != nil {
		return "", "", err
	}
	name := host
	if role != All {
		name += "-" + string(role)
	}
	cert, key = filepath.Join(dir, name+"-cert.pem"), filepath.Join(dir, name+"-key.pem")
	return cert, key, errors.Join(write(key, keyPEM, 0o600), write(cert, certPEM, 0o644))
}

// authority loads the authority of a folder, or creates it.
func authority(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	certPath, keyPath := filepath.Join(dir, CAFile), filepath.Join(dir, caKeyFile)
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	switch _, absent := os.Lstat(keyPath); {
	case err == nil:
		signer, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
		if !ok || !pair.Leaf.IsCA {
			return nil, nil, fmt.Errorf("%s is not an authority of 'atoll node cert'", certPath)
		}
		return pair.Leaf, signer, nil
	case !errors.Is(err, fs.ErrNotExist) || absent == nil:
		return nil, nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	if _, err := os.Lstat(certPath); err == nil {
		return nil, nil, fmt.Errorf("%s is missing; run this on the machine that keeps the authority's key, or choose an empty folder for a new authority", keyPath)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Atoll servers"}, KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	certPEM, keyPEM, err := sign(template, nil, nil, caLife)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(write(keyPath, keyPEM, 0o600), write(certPath, certPEM, 0o644)); err != nil {
		return nil, nil, err
	}
	return authority(dir)
}

// sign makes a key and its certificate; a nil ca signs itself.
func sign(template, ca *x509.Certificate, signer *ecdsa.PrivateKey, life time.Duration) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-skew), now.Add(life)
	if ca == nil {
		ca, signer = template, key
	} else if template.NotAfter.After(ca.NotAfter) {
		return nil, nil, fmt.Errorf("the authority is valid until %s only; ask for a shorter --life, or choose an empty folder for a new authority", ca.NotAfter.Format(time.DateOnly))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

// write replaces a file whole.
func write(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Files are the PEM files of one server. Each connection reads them again, so a renewed certificate
// needs no restart.
type Files struct{ Cert, Key, CA string }

func (f Files) load() (tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return pair, nil, fmt.Errorf("node_cert and node_key: %w", err)
	}
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return pair, nil, fmt.Errorf("node_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return pair, nil, fmt.Errorf("node_ca: %s contains no certificate", f.CA)
	}
	return pair, pool, nil
}

// Server returns the configuration of a server, which accepts only clients with a certificate of
// the authority. It fails if the files cannot be used or the certificate is not for host.
func (f Files) Server(host string) (*tls.Config, error) {
	pair, _, err := f.load()
	if err != nil {
		return nil, err
	}
	if err := pair.Leaf.VerifyHostname(host); err != nil {
		return nil, fmt.Errorf("node_cert: other servers would refuse it: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pair, pool, err := f.load()
		if err != nil {
			return nil, err
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, nil
	}}, nil
}

// Client returns the configuration of a client of the server at host.
func (f Files) Client(host string) (*tls.Config, error) {
	pair, pool, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: host}, nil
}
