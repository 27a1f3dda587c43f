package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// System is what has this server trust more authorities where no setting does.
const System = "add its certificate to this machine's (update-ca-certificates), or name a file with both in SSL_CERT_FILE, and start the server again"

// Setting is what has this server trust more authorities by a setting.
func Setting(name string) string {
	return "name a PEM file with its certificate in the setting " + name
}

// Untrusted says, for a server whose certificate was refused, why and what the operator can do;
// ok is false for another failure. remedy is System or a Setting.
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
