package execution

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// MaxHintTail is how many of the last bytes of a stream Hint needs.
const MaxHintTail = 4 << 10

// Tail collects the last bytes of a stream for Hint.
type Tail []byte

// Add appends output of the stream.
func (t *Tail) Add(p []byte) {
	p = p[max(0, len(p)-MaxHintTail):]
	if extra := len(*t) + len(p) - MaxHintTail; extra > 0 {
		*t = append((*t)[:0], (*t)[extra:]...)
	}
	*t = append(*t, p...)
}

// noNetwork are what programs print when a name cannot be resolved or a network
// cannot be reached: of the C library, Python, Node.js, curl, pip, npm, apt and Go.
var noNetwork = [][]byte{
	[]byte("emporary failure in name resolution"), []byte("emporary failure resolving"), []byte("ame or service not known"),
	[]byte("ould not resolve host"), []byte("nable to resolve host"), []byte("EAI_AGAIN"), []byte("ENOTFOUND"), []byte("NameResolutionError"),
	[]byte("server misbehaving"), []byte("no such host"),
	[]byte("etwork is unreachable"), []byte("ENETUNREACH"), []byte("o route to host"), []byte("EHOSTUNREACH"),
	[]byte("(from versions: none)"), // of pip, which says no more when it does not retry
}

// untrusted are messages that programs print if they do not know a certificate's authority:
// OpenSSL in Python, pip, curl, git and Ruby; GnuTLS in git, wget and apt; Node.js, Go, Rust
// and Java.
var untrusted = [][]byte{
	[]byte("CERTIFICATE_VERIFY_FAILED"), []byte("certificate verify failed"), []byte("unable to get local issuer certificate"), []byte("self-signed certificate"), []byte("self signed certificate"),
	[]byte("erver certificate verification failed"), []byte("certificate is NOT trusted"), []byte("doesn't have a known issuer"),
	[]byte("SELF_SIGNED_CERT"), []byte("UNABLE_TO_GET_ISSUER_CERT"), []byte("UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
	[]byte("signed by unknown authority"), []byte("UnknownIssuer"), []byte("PKIX path building failed"),
}

func says(tails, texts [][]byte) bool {
	return slices.ContainsFunc(tails, func(tail []byte) bool {
		return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(tail, text) })
	})
}

// LacksNetwork reports whether the ends of a program's streams say that a name was not
// resolved or a network not reached.
func LacksNetwork(tails ...[]byte) bool { return says(tails, noNetwork) }

// UntrustedHint tells the operator how to make a sandbox's programs trust a certificate.
const UntrustedHint = "a certificate's authority is not known, as behind a proxy that intercepts TLS: the operator can add it with 'atoll config set sandbox_ca_bundle FILE'"

// Untrusted reports whether a program printed that it does not know a certificate's authority.
// tails are the last bytes of its streams.
func Untrusted(tails ...[]byte) bool { return says(tails, untrusted) }

// Network describes the network access of a program.
type Network struct {
	Policy  runtime.NetworkPolicy // in force while the program ran
	Refused []Refusal
	// Restart is the command that applies the environment's network to a named sandbox; "" for
	// other sandboxes, which always use the environment's network.
	Restart string
	// Environment is the current policy of a named sandbox's environment.
	Environment runtime.NetworkPolicy
}

// Hint tells the caller how to fix a program that the network policy may have made fail; "" if
// nothing suggests that. tails are the last bytes of the program's streams, without secrets.
func (n *Network) Hint(tails ...[]byte) string {
	if n.Policy.Blocked() {
		switch {
		case !LacksNetwork(tails...):
			return ""
		case n.Restart != "" && !n.Environment.Blocked():
			return fmt.Sprintf("the sandbox has no network, and its environment has one now: '%s' gives it to the sandbox", n.Restart)
		}
		return "the environment has no network; 'atoll env set TENANT NAME --allow HOST' opens it for a host, and --allow pypi for a package registry" + n.then()
	}
	if Untrusted(tails...) {
		return UntrustedHint
	}
	for _, r := range n.Refused {
		switch {
		case r.Rule != "allowed_hosts" || r.Host == "":
		case n.Restart != "" && n.Environment.Reaches(r.Host, r.Port):
			return fmt.Sprintf("the sandbox's network does not allow %s, and its environment's does: '%s' gives the sandbox that network", r.Host, n.Restart)
		default:
			return fmt.Sprintf("the environment's network does not allow %s; 'atoll env set TENANT NAME --allow %[1]s' does%s", r.Host, n.then())
		}
	}
	return ""
}

// then returns the command to run after changing the environment, if any.
func (n *Network) then() string {
	if n.Restart == "" {
		return ""
	}
	return ", then '" + n.Restart + "'"
}
