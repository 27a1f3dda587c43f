package tenant

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
)

// AdminConfig is what an Admin is made of. All of it is required but for Packages.
type AdminConfig struct {
	Store     Store
	Authority *Authority     // is told of every change
	Limits    runtime.Limits // of an environment that says nothing
	Image     string         // of one that the tenant makes itself and that names no template

	// Templates are the images by the names that tenants know; without any
	// DefaultTemplate is Image.
	Templates map[string]string

	// CheckImage says why an environment cannot have an image.
	CheckImage func(ctx context.Context, name string) error
	// CheckNetwork says why an environment cannot have a policy that keeps to the
	// domain's rules; nil for what these say.
	CheckNetwork func(p runtime.NetworkPolicy) error
	// CheckWebhook and CheckSecret say why a key cannot have a URL for its
	// webhooks, or a secret that signs them.
	CheckWebhook func(ctx context.Context, url string) error
	CheckSecret  func(secret string) error
	// Packages installs what environments have; nil refuses packages.
	Packages Packages
	// Deleted is called when the deletion of a tenant starts; may be nil.
	Deleted func(id ID)
	// Reach says why a connection, which is right in itself, leads nowhere.
	Reach func(ctx context.Context, c *storage.Connection) error
}

// Admin changes tenants and what is theirs. It holds the rules that a Store
// does not know; every refusal is a *fault.Error.
type Admin struct {
	cfg   AdminConfig
	store Store

	// mu makes what is read, checked and written one step within this process.
	mu sync.Mutex
}

// NewAdmin returns an Admin.
func NewAdmin(cfg AdminConfig) *Admin { return &Admin{cfg: cfg, store: cfg.Store} }

// changing begins a change; the function it returns ends it.
func (a *Admin) changing() func() {
	a.mu.Lock()
	return func() {
		a.mu.Unlock()
		a.cfg.Authority.Forget()
	}
}

// now is the time as stores keep it.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// checkName reports why name cannot be that of a thing. What looks like an id
// cannot: names and ids are asked for in the same place.
func checkName(thing, name string) error {
	if !Name.MatchString(name) {
		return invalid("%s name must be 1 to 64 letters, digits, dots, underscores and hyphens, starting with a letter or digit", thing)
	}
	for _, prefix := range []string{"ten_", "env_", "key_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && len(rest) == 16 && strings.Trim(rest, "0123456789abcdef") == "" {
			return invalid("%s name must not look like an id", thing)
		}
	}
	return nil
}

// oneOf reports a value that is not among those there are.
func oneOf[T ~string](field string, value T, all []T) error {
	if slices.Contains(all, value) {
		return nil
	}
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = string(v)
	}
	return invalid("%s must be one of %s", field, strings.Join(names, ", "))
}
