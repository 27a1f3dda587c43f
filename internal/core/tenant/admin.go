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

// AdminConfig configures an Admin. All fields are required except Packages and Deleted.
type AdminConfig struct {
	Store     Store
	Authority *Authority     // notified of every change
	Limits    runtime.Limits // of an environment that sets none
	Image     string         // of an environment that a tenant creates without a template

	// Templates maps the template names that tenants use to images. If it is empty, DefaultTemplate
	// stands for Image.
	Templates map[string]string

	// CheckImage returns an Invalid fault if an environment cannot use an image. An Unavailable fault
	// means that this is unknown.
	CheckImage func(ctx context.Context, name string) error
	// CheckNetwork returns an error if an environment cannot use a policy that the domain's rules
	// accept; nil to apply only those rules.
	CheckNetwork func(p runtime.NetworkPolicy) error
	// CheckWebhook and CheckSecret return an error if a key cannot use a webhook URL, or a secret
	// to sign webhooks.
	CheckWebhook func(ctx context.Context, url string) error
	CheckSecret  func(secret string) error
	// Packages installs the packages of environments; nil rejects packages.
	Packages Packages
	// Deleted is called when the deletion of a tenant starts; may be nil.
	Deleted func(id ID)
	// Reach returns an error if a valid connection does not lead to reachable storage.
	Reach func(ctx context.Context, c *storage.Connection) error
}

// Admin changes tenants and their resources. It enforces the rules that a Store does not know.
// Every rejection is a *fault.Error.
type Admin struct {
	cfg   AdminConfig
	store Store

	// mu makes what is read, checked and written one step within this process.
	mu sync.Mutex
}

// NewAdmin returns an Admin.
func NewAdmin(cfg AdminConfig) *Admin { return &Admin{cfg: cfg, store: cfg.Store} }

// changing starts a change and returns the function that ends it.
func (a *Admin) changing() func() {
	a.mu.Lock()
	return func() {
		a.mu.Unlock()
		a.cfg.Authority.Forget()
	}
}

// now returns the current time with the precision of stores.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

// checkName validates a name. It rejects names that look like ids, because callers may pass either.
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

// oneOf rejects a value that is not in all.
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
