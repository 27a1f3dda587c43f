package execution

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// Limits of a request. Characters are Unicode code points; bytes are of UTF-8.
const (
	MaxCode        = 1 << 20 // bytes; 1 MB in the contract
	DefaultTimeout = 60 * time.Second
	MinTimeout     = time.Second

	MaxEnvVars  = 50       // after merging
	MaxEnvKey   = 128      // characters
	MaxEnvValue = 4096     // characters
	MaxEnvBytes = 64 << 10 // keys and values together, after merging

	MaxMetadata      = 10
	MaxMetadataKey   = 40  // characters, at least 1
	MaxMetadataValue = 256 // characters
)

// EnvPrefix starts the names of variables that only the platform sets.
const EnvPrefix = "ATOLL_"

// ReservedEnv lists the variables that the platform sets for every program. They identify the user
// and the location, so a request may not change them.
var ReservedEnv = []string{
	"HOME", "HOSTNAME", "IFS", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "SHLVL", "USER",
}

var (
	envKey        = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	sandboxEnvKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Request asks for one execution. Policy.Check validates it.
type Request struct {
	TraceID  string // set by the caller's edge, unique
	Code     string
	Language Language
	Timeout  time.Duration
	Env      map[string]string // the request's own, which override the environment's
	Metadata map[string]string // for the record; never shown to the program
	Thread   string            // id of the thread whose home the program uses; "" for a temporary home
	Partial  bool              // stream an incomplete line after PartialAfter without output
	SubPaths []storage.SubPath // narrows the mounts
	Input
}

// NewTraceID returns an unguessable trace id with 100 random bits. The contract's client accepts at
// most 20 characters after the prefix.
func NewTraceID() string { return tracePrefix + strings.ToLower(rand.Text()[:20]) }

// TraceIDOf derives a trace id from a digest of at least 13 bytes.
func TraceIDOf(digest []byte) string {
	return tracePrefix + strings.ToLower(base32.StdEncoding.EncodeToString(digest)[:20])
}

const tracePrefix = "trc_"

// Policy is what the caller's environment and plan add to a request and allow in it.
type Policy struct {
	// MaxTimeout is the plan's longest run. Check rejects a longer timeout and never shortens it.
	MaxTimeout time.Duration
	// Default is the timeout of a request that sets none; 0 for DefaultTimeout. Bound is how the
	// error refers to MaxTimeout; "" for "your plan's maximum".
	Default time.Duration
	Bound   string
	// Cause returns the fault's Err, which says which setting would allow the timeout; nil for
	// none.
	Cause func(asked time.Duration) error
	// Env is set for every execution; the request's values override it.
	Env map[string]string
}

// DefaultTimeout returns the timeout of a request that sets none.
func (p Policy) DefaultTimeout() time.Duration {
	return min(cmp.Or(p.Default, DefaultTimeout), p.MaxTimeout)
}

// Check validates r, with its variables merged into the policy's. It returns a *fault.Error:
// Invalid for a broken rule, Exhausted for a limit of the plan. Check applies no defaults; callers
// set the language and timeout first.
func (p Policy) Check(r Request) error {
	for _, check := range []func() error{
		func() error { return checkCode(r.Code) },
		func() error { return checkLanguage(r.Language) },
		func() error { return p.checkTimeout(r.Timeout) },
		func() error { return CheckEnv(r.Env) },
		func() error { return checkMetadata(r.Metadata) },
		func() error { return CheckThread(r.Thread) },
		func() error { return r.check(r.Language) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if len(p.Env) > 0 {
		return checkEnvSize(p.Env, r.Env, " together with those of the environment and the key")
	}
	return nil
}

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func checkCode(code string) error {
	if len(code) < 1 || len(code) > MaxCode {
		return invalid("code must be between 1 byte and 1 MB")
	}
	if !utf8.ValidString(code) {
		return invalid("code must be valid UTF-8")
	}
	return nil
}

func checkLanguage(l Language) error {
	if slices.Contains(Languages, l) {
		return nil
	}
	names := make([]string, len(Languages))
	for i, known := range Languages {
		names[i] = fmt.Sprintf("%q", known)
	}
	return invalid("language must be one of %s", strings.Join(names, ", "))
}

func (p Policy) checkTimeout(d time.Duration) error {
	if d < MinTimeout {
		return invalid("timeout must be at least %d second", MinTimeout/time.Second)
	}
	if d > p.MaxTimeout {
		limit := p.MaxTimeout / time.Second
		f := fault.Limit("timeout", time.Time{}, "timeout exceeds %s of %d seconds; ask for %d or less.", cmp.Or(p.Bound, "your plan's maximum"), limit, limit)
		if p.Cause != nil {
			f.Err = p.Cause(d)
		}
		return f
	}
	return nil
}

// CheckEnv returns an error for the first invalid variable in name order. It checks the count
// first, because a body can hold half a million variables.
func CheckEnv(env map[string]string) error { return checkEnv(env, checkEnvKey) }

// CheckSandboxEnv is CheckEnv for named sandboxes and their processes, which accept any name that a
// shell can set.
func CheckSandboxEnv(env map[string]string) error { return checkEnv(env, checkSandboxEnvKey) }

func checkEnv(env map[string]string, checkKey func(string) error) error {
	if len(env) > MaxEnvVars {
		return checkEnvSize(nil, env, "")
	}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		if err := checkKey(key); err != nil {
			return err
		}
		if err := checkEnvVar(key, env[key]); err != nil {
			return err
		}
	}
	return checkEnvSize(nil, env, "")
}

func checkEnvKey(key string) error {
	if len(key) > MaxEnvKey || !envKey.MatchString(key) {
		return invalid("env_vars name %s must be 1 to %d uppercase letters, digits and underscores, starting with a letter", show(key), MaxEnvKey)
	}
	return nil
}

func checkSandboxEnvKey(key string) error {
	if len(key) > MaxEnvKey || !sandboxEnvKey.MatchString(key) {
		return invalid("env_vars name %s must be 1 to %d ASCII letters, digits and underscores, not starting with a digit", show(key), MaxEnvKey)
	}
	return nil
}

func checkEnvVar(key, value string) error {
	switch {
	case slices.Contains(ReservedEnv, key):
		return invalid("env_vars name %q is reserved: the system sets it", key)
	case strings.HasPrefix(strings.ToUpper(key), EnvPrefix):
		return invalid("env_vars name %q is reserved: the platform uses names that start with %s", key, EnvPrefix)
	case utf8.RuneCountInString(value) > MaxEnvValue:
		return invalid("env_vars value of %q must be at most %d characters", key, MaxEnvValue)
	case strings.ContainsRune(value, 0):
		return invalid("env_vars value of %q must not contain a NUL character", key)
	case !utf8.ValidString(value):
		return invalid("env_vars value of %q must be valid UTF-8", key)
	}
	return nil
}

// checkEnvSize checks the variables as a whole: those of base that own does not override, plus own.
// which tells the error where they come from.
func checkEnvSize(base, own map[string]string, which string) error {
	n, size := len(own), 0
	for k, v := range own {
		size += len(k) + len(v)
	}
	for k, v := range base {
		if _, anew := own[k]; !anew {
			n++
			size += len(k) + len(v)
		}
	}
	switch {
	case n > MaxEnvVars:
		return invalid("env_vars must have at most %d variables%s", MaxEnvVars, which)
	case size > MaxEnvBytes:
		return invalid("env_vars must be at most %d bytes in names and values%s", MaxEnvBytes, which)
	}
	return nil
}

var threadID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// CheckThread validates a thread id; "" means no thread.
func CheckThread(id string) error {
	if id != "" && !threadID.MatchString(id) {
		return invalid("thread_id must be 1 to 128 letters, digits, hyphens and underscores, starting with a letter or digit")
	}
	return nil
}

func checkMetadata(m map[string]string) error {
	if len(m) > MaxMetadata {
		return invalid("metadata must have at most %d keys", MaxMetadata)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if n := utf8.RuneCountInString(key); n < 1 || n > MaxMetadataKey {
			return invalid("metadata key %s must be 1 to %d characters", show(key), MaxMetadataKey)
		}
		if utf8.RuneCountInString(m[key]) > MaxMetadataValue {
			return invalid("metadata value of %s must be at most %d characters", show(key), MaxMetadataValue)
		}
		if strings.ContainsRune(key, 0) || strings.ContainsRune(m[key], 0) {
			return invalid("metadata %s must not contain a NUL character", show(key))
		}
		if !utf8.ValidString(key) || !utf8.ValidString(m[key]) {
			return invalid("metadata %s must be valid UTF-8", show(key))
		}
	}
	return nil
}

// show quotes a caller's name for an error, truncated so that it cannot flood the message.
func show(name string) string {
	const most = 60
	if r := []rune(name[:min(len(name), 4*most)]); len(r) > most {
		name = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", name)
}
