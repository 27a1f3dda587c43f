package tenant

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// MinSecret is the fewest characters of a secret, white space around it left
// away: what is shorter cannot be told from ordinary output.
const MinSecret = 8

// VariablesChange says what to change of the variables of an environment or a
// key; what is in none of them stays.
type VariablesChange struct {
	Env, Secrets map[string]string   // set; a name is in one of them
	Unset        []string            // taken out of either
	Hosts        map[string][]string // what secrets are bound to from now on; none for what programs get
}

// apply sets and unsets variables. A name that is set as one kind stops being of
// the other.
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
