package initclient

import (
	"path"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// TrustVariables are the variables by which programs find the certificates that
// were added to a sandbox, in a file of the guest's folder. Where they replace what a program trusts by itself,
// they name the image's and the added ones together.
func TrustVariables(file string) map[string]string {
	env := map[string]string{"NODE_EXTRA_CA_CERTS": path.Join(runtime.GuestDir, file)} // adds to Node's own
	for _, name := range []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE"} {
		env[name] = wire.CABundle
	}
	return env
}
