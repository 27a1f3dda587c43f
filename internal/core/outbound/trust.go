package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// System is the remedy for connections whose authorities no setting configures.
const System = "add its certificate to this machine's (update-ca-certificates), or name a file with both in SSL_CERT_FILE, and restart the server"

// Setting returns the remedy for connections whose authorities a setting configures.
func Setting(name string) string {
	return "name a PEM file with its certificate in the setting " + name
}

// Untrusted explains why this server rejected another server's certificate and how the operator
// can fix it; ok is false for other failures. remedy is System or the result of Setting.
func Untrusted(err error, remedy string) (why string, ok bool) {
	c, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return "", false
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](c.Err); unknown {
		return "its certificate is signed by an authority that this server does not know, as behind a proxy that intercepts TLS: the operator can " + remedy, true
	}
	return "its certificate is not valid: " + c.Err.Error(), true
}
