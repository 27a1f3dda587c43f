package tenant

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/runtime"
)

// MaxSecretHosts is how many hosts a secret can be bound to.
const MaxSecretHosts = 32

// Binding says that a secret is for some hosts alone. Programs get a placeholder
// instead of it.
type Binding struct {
	Hosts       []string // names, and "*.example.com" for all below one
	Placeholder string   // made once, of nothing: it says nothing of the secret
}

// sendable is what can stand in a header of HTTP.
var sendable = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?$`)

// bind changes bindings as hosts says, by the names of secrets; no hosts end a
// binding. A secret that gets another value stays bound, one that has gone or
// become a plain variable is not.
func bind(bound map[string]Binding, secrets map[string]string, hosts map[string][]string) (map[string]Binding, error) {
	out := make(map[string]Binding, len(bound))
	maps.Copy(out, bound)
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		list := hosts[name]
		if _, is := secrets[name]; !is {
			return nil, invalid("secret_hosts: secret %q not found; set it in secrets as well", name)
		}
		if len(list) == 0 {
			delete(out, name)
			continue
		}
		if why := checkHosts(list); why != "" {
			return nil, invalid("secret_hosts: %q %s", name, why)
		}
		b := out[name]
		if b.Placeholder == "" {
			b.Placeholder = newPlaceholder()
		}
		b.Hosts = slices.Clone(list)
		out[name] = b
	}
	maps.DeleteFunc(out, func(name string, _ Binding) bool { _, is := secrets[name]; return !is })
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if !sendable.MatchString(secrets[name]) {
			return nil, invalid("the secret %q is bound to hosts and sent in headers, so it must be one line of printable ASCII without surrounding spaces", name)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// checkHosts says why a secret cannot be bound to hosts, "" for nothing.
func checkHosts(list []string) string {
	if len(list) > MaxSecretHosts {
		return fmt.Sprintf("names %d hosts; a secret can be bound to %d", len(list), MaxSecretHosts)
	}
	for _, h := range list {
		if h == "*" {
			return `has "*", which would send the secret to any host; name its hosts`
		}
		if _, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
			return fmt.Sprintf("has %q, an address; a secret is bound to names, which certificates are for", h)
		}
		if err := runtime.CheckHost(h); err != nil {
			return "has " + err.Error()
		}
		if why := shortHost(h); why != "" {
			return "has " + why
		}
	}
	return ""
}

func newPlaceholder() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "atoll-bound-" + hex.EncodeToString(b[:])
}

// BoundSecrets are p's secrets that are bound to hosts, the key's after those of
// the environment that the key does not set anew.
func (p *Principal) BoundSecrets() []execution.BoundSecret {
	return append(boundSecrets(p.Environment.Bound, p.Environment.Secrets, p.Key.Variables()), p.Key.BoundSecrets()...)
}

// BoundSecrets are the key's own secrets that are bound to hosts.
func (k *Key) BoundSecrets() []execution.BoundSecret { return boundSecrets(k.Bound, k.Secrets, nil) }

// BoundSecrets are the environment's secrets that are bound to hosts.
func (e *Environment) BoundSecrets() []execution.BoundSecret {
	return boundSecrets(e.Bound, e.Secrets, nil)
}

func boundSecrets(bound map[string]Binding, secrets, but map[string]string) []execution.BoundSecret {
	var out []execution.BoundSecret
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		if _, anew := but[name]; !anew {
			out = append(out, execution.BoundSecret{Placeholder: bound[name].Placeholder, Value: secrets[name], Hosts: bound[name].Hosts})
		}
	}
	return out
}
