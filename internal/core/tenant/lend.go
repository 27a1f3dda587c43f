package tenant

import (
	"errors"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/redact"
)

// Bind validates a secret's binding to hosts and assigns its placeholder. Errors name the fields
// auth.secret_name, auth.secret_value or auth.hosts.
func Bind(name, value string, b Binding) (Binding, error) {
	if err := execution.CheckEnv(map[string]string{name: "x"}); err != nil {
		why := err.Error()
		if f, ok := errors.AsType[*fault.Error](err); ok {
			why = f.Msg
		}
		return b, invalid("auth.secret_name: %s", strings.TrimPrefix(why, "env_vars "))
	}
	if n := utf8.RuneCountInString(value); n < MinSecret || n > execution.MaxEnvValue || !sendable.MatchString(value) {
		return b, invalid("auth.secret_value is sent in headers, so it must be one line of %d to %d printable ASCII characters without surrounding spaces", MinSecret, execution.MaxEnvValue)
	}
	if why := checkHosts(b.Hosts); why != "" {
		return b, invalid("auth.hosts %s", why)
	}
	if b.Placeholder == "" {
		b.Placeholder = newPlaceholder()
	}
	return b, nil
}

// Loan is a secret bound to hosts that a caller's programs use temporarily.
type Loan struct {
	Name, Value string
	Binding
}

// Lend adds secrets to p's programs, overriding the variables of its key. It does not modify data
// that p shares with other callers.
func (p *Principal) Lend(loans []Loan) error {
	if len(loans) == 0 {
		return nil
	}
	secrets, bound := maps.Clone(p.Key.Secrets), maps.Clone(p.Key.Bound)
	if secrets == nil {
		secrets = map[string]string{}
	}
	if bound == nil {
		bound = map[string]Binding{}
	}
	for _, l := range loans {
		secrets[l.Name], bound[l.Name] = l.Value, l.Binding
	}
	p.Key.Secrets, p.Key.Bound, p.Key.variables, p.variables = secrets, bound, nil, nil
	err := execution.CheckEnv(p.Variables())
	if err == nil {
		err = redact.Validate(p.Secrets())
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return fault.New(fault.Invalid, "the variables of the environment and the key, together with the secrets of the session's vaults: %s", f.Msg)
	}
	return err
}
