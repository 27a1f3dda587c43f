package execution

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/internal/core/runtime"
)

// MaxHintTail is how many of the last bytes of a stream Hint needs.
const MaxHintTail = 4 << 10

// noNetwork are what programs print when a name cannot be resolved or a network
// cannot be reached: of the C library, Python, Node.js, curl, pip, npm, apt and Go.
var noNetwork = [][]byte{
	[]byte("emporary failure in name resolution"), []byte("emporary failure resolving"), []byte("ame or service not known"),
	[]byte("ould not resolve host"), []byte("nable to resolve host"), []byte("EAI_AGAIN"), []byte("ENOTFOUND"), []byte("NameResolutionError"),
	[]byte("server misbehaving"), []byte("no such host"),
	[]byte("etwork is unreachable"), []byte("ENETUNREACH"), []byte("o route to host"), []byte("EHOSTUNREACH"),
	[]byte("(from versions: none)"), // of pip, which says no more when it does not retry
}

// LacksNetwork reports whether the ends of a program's streams say that a name was not
// resolved or a network not reached.
func LacksNetwork(tails ...[]byte) bool {
	for _, tail := range tails {
		if slices.ContainsFunc(noNetwork, func(text []byte) bool { return bytes.Contains(tail, text) }) {
			return true
		}
	}
	return false
}

// NetworkHint is what the caller can do about a failed run that the network's rules
// may have failed; empty when nothing says so. tails are the ends of its streams,
// without secrets.
func NetworkHint(p runtime.NetworkPolicy, t Traffic, tails ...[]byte) string {
	if p.Blocked() {
		if LacksNetwork(tails...) {
			return "the environment has no network; 'atoll env set TENANT NAME --allow HOST' opens it for a host, and --allow pypi for a package registry"
		}
		return ""
	}
	for _, r := range t.Refused {
		if r.Rule == "allowed_hosts" && r.Host != "" {
			return fmt.Sprintf("the environment's network does not allow %s; 'atoll env set TENANT NAME --allow %[1]s' does", r.Host)
		}
	}
	return ""
}
