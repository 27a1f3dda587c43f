package tenant

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// MinSecret is the shortest secret, in characters without surrounding white space. Shorter values
// would match ordinary output.
const MinSecret = 8

// VariablesChange changes the variables of an environment or a key. Variables that it does not
// mention remain.
type VariablesChange struct {
	Env, Secrets map[string]string   // variables to set; a name may be in only one of them
	Unset        []string            // variables to delete
	Hosts        map[string][]string // hosts to bind secrets to; an empty list passes the secret to programs
}

// apply sets and deletes variables. Setting a name as one kind removes it from the other.
func (c VariablesChange) apply(plain, secret *map[string]string, bound *map[string]Binding) error {
	env, secrets := copyOf(*plain), copyOf(*secret)
	for _, name := range c.Unset {
		delete(env, name)
		delete(secrets, name)
	}
	for name, value := range c.Env {
		delete(secrets, name)
		env[name] = value
	}
	for name, value := range c.Secrets {
		if _, both := c.Env[name]; both {
			return invalid("%q is in both env_vars and secrets; remove it from one of them", name)
		}
		delete(env, name)
		secrets[name] = value
	}
	all := maps.Clone(env)
	maps.Copy(all, secrets)
	if err := execution.CheckEnv(all); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		if utf8.RuneCountInString(strings.TrimSpace(c.Secrets[name])) < MinSecret {
			return invalid("the secret %q must have at least %d characters: a shorter one could match ordinary output", name, MinSecret)
		}
	}
	if err := redact.Validate(slices.Collect(maps.Values(secrets))); err != nil {
		return err
	}
	bindings, err := bind(*bound, secrets, c.Hosts)
	if err != nil {
		return err
	}
	*plain, *secret, *bound = env, secrets, bindings
	return nil
}

func copyOf(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	maps.Copy(out, m)
	return out
}
