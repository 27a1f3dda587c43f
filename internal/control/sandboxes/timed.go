package sandboxes

import (
	"context"
	"encoding/json"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// E2B's API gives a sandbox a single deadline, a template, metadata, and ports that may need a
// token. Atoll stores metadata and the ports' setting in variables of the sandbox.

const (
	metadataEnv = "E2B_METADATA"
	privateEnv  = "E2B_PRIVATE_TRAFFIC"

	maxSeconds = 365 * 24 * 60 * 60
	maxFork    = 20 // copies
)

// never is the deadline that clients see of a sandbox without one: they expect a time.
const never = 365 * 24 * time.Hour

// anyTemplate are the templates that stand for the image of the key's environment. Clients that
// choose no template ask for one of them.
var anyTemplate = []string{"", "base", "code-interpreter-v1", "code-interpreter"}

// Seconds returns a client's timeout; n is nil if the client sets none.
func Seconds(n *int64, otherwise int64) (time.Duration, error) {
	if n == nil {
		n = &otherwise
	}
	if *n < 0 || *n > maxSeconds {
		return 0, fault.New(fault.Invalid, "timeout must be 0 to %d seconds", maxSeconds)
	}
	return max(time.Duration(*n)*time.Second, time.Millisecond), nil // elsewhere, 0 selects the longest timeout
}

// NewTimed describes a sandbox with a deadline to create.
type NewTimed struct {
	Session  string
	Template string // an image, a snapshot, or one of anyTemplate
	Timeout  time.Duration
	Pauses   bool // at the deadline; otherwise Atoll deletes the sandbox
	Env      map[string]string
	Metadata map[string]string
	Private  bool // its ports need a token
	Network  Narrow
	Key      string // of idempotency; "" for none
}

// CreateTimed creates a sandbox with a deadline, or returns the one that the caller created with
// the same idempotency key.
func (s *Service) CreateTimed(ctx context.Context, p *tenant.Principal, t *Trail, in *NewTimed) (*sandbox.Sandbox, error) {
	n := &NewSandbox{Session: &in.Session, Command: &in.Template, Network: in.Network, Spec: sandbox.Spec{Env: in.Env, Timeout: in.Timeout, SleepAfter: -1}}
	if in.Pauses {
		n.Spec.Timeout, n.Spec.SleepAfter = 0, in.Timeout
	}
	if n.Spec.Env == nil && (in.Private || len(in.Metadata) > 0) {
		n.Spec.Env = map[string]string{}
	}
	if len(in.Metadata) > 0 {
		text, err := json.Marshal(in.Metadata)
		if err != nil {
			return nil, err
		}
		n.Spec.Env[metadataEnv] = string(text)
	}
	if in.Private {
		n.Spec.Env[privateEnv] = "true"
	}
	switch id := sandbox.SnapshotID(in.Template); {
	case id.Valid():
		n.Spec.Snapshot = id
	case !slices.Contains(anyTemplate, in.Template):
		n.Spec.Image, n.Spec.ImageExact = in.Template, true // E2B's answers have no place for a warning
	}
	var err error
	if n.Name, err = nameFor(p, in.Key); err != nil {
		return nil, err
	}
	sb, _, err := s.Create(ctx, p, t, n)
	return sb, err
}

var idempotencyKey = regexp.MustCompile(`^[a-z0-9-]{1,255}$`)

// nameFor returns the name of a new sandbox. A client that repeats its key gets the sandbox of the
// first request.
func nameFor(p *tenant.Principal, key string) (string, error) {
	if key == "" {
		return NewName("e2b-"), nil
	}
	if !idempotencyKey.MatchString(key) {
		return "", fault.New(fault.Invalid, "Idempotency-Key must be 1 to 255 lower-case letters, digits and hyphens")
	}
	return nameForKey(p, "e2b-key-", key), nil
}

// everything is all IPv4 addresses.
const everything = "0.0.0.0/0"

// Narrowed returns the network of a sandbox whose client closes addresses and opens others: nil for
// the network of the environment. closed closes all addresses, as does a denied range.
func Narrowed(allow, deny []string, closed bool) (Narrow, error) {
	for _, to := range deny {
		if to != everything && to != "::/0" {
			return nil, fault.New(fault.Invalid, "network: denyOut can be %q alone, with allowOut for what stays open: this server has no rules that close a part", everything)
		}
		closed = true
	}
	if !closed || slices.Contains(allow, everything) {
		return nil, nil
	}
	hosts, ranges, no := []string{}, []string{}, false
	for _, to := range allow {
		if at, err := netip.ParseAddr(to); err == nil {
			ranges = append(ranges, netip.PrefixFrom(at, at.BitLen()).String())
		} else if strings.Contains(to, "/") {
			ranges = append(ranges, to)
		} else {
			hosts = append(hosts, to)
		}
	}
	return func(env runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) {
		list, err := tenant.ParseCIDRs(ranges)
		if err != nil {
			return nil, err
		}
		change := tenant.PermissionsChange{AnyAddress: &no, AllowedHosts: &hosts, AllowedCIDRs: &list}
		if env.Blocked() { // and stays so
			_, err := change.NetworkOver(runtime.NetworkPolicy{Mode: runtime.NetworkUnrestricted})
			return nil, err
		}
		policy, err := change.NetworkOver(env)
		return &policy, err
	}, nil
}

// Opened returns what Narrowed takes for the network of a sandbox; nil for a network without limits.
func Opened(p runtime.NetworkPolicy) (allow, deny []string) {
	if p.Mode == runtime.NetworkUnrestricted {
		return nil, nil
	}
	allow = append([]string{}, p.AllowedHosts...)
	for _, c := range p.AllowedCIDRs {
		allow = append(allow, c.String())
	}
	return allow, []string{everything}
}

// SetNarrowed replaces the network of a sandbox. private is the setting of its ports that the client
// repeats, which cannot change; nil if the client omits it.
func (s *Service) SetNarrowed(ctx context.Context, r Ref, sb *sandbox.Sandbox, private *bool, network Narrow) error {
	if private != nil && *private != Private(sb) {
		return fault.New(fault.Invalid, "network: allowPublicTraffic can be said when a sandbox is made alone")
	}
	if network == nil {
		network = Everything
	}
	_, err := s.Update(ctx, r, Change{Network: network})
	return err
}

// Private reports whether the ports of a sandbox need a token.
func Private(sb *sandbox.Sandbox) bool { return sb.Env[privateEnv] == "true" }

// Metadata returns the metadata of a sandbox; it is never nil.
func Metadata(sb *sandbox.Sandbox) map[string]string {
	out := map[string]string{}
	_ = json.Unmarshal([]byte(sb.Env[metadataEnv]), &out) // callers of other APIs can set any value
	if out == nil {
		out = map[string]string{}
	}
	return out
}

// Template returns the name of the template that a sandbox was created from.
func Template(sb *sandbox.Sandbox) string {
	if sb.ImageAlias == "" {
		return "base"
	}
	return sb.ImageAlias
}

// End returns when a sandbox ends or is put to sleep.
func End(sb *sandbox.Sandbox) time.Time {
	if at, ok := Deadline(sb); ok {
		return at
	}
	return sb.CreatedAt.Add(never).UTC()
}

// CPUs returns the number of whole processors that a sandbox can use.
func CPUs(sb *sandbox.Sandbox) int { return max(1, int(math.Ceil(sb.Limits.CPU))) }

// Load is the use of a sandbox's resources.
type Load struct {
	sandbox.Usage
	At  time.Time
	CPU float64 // average since the creation of the sandbox, in percent of CPUs
}

// Load returns the load of a sandbox.
func (s *Service) Load(ctx context.Context, r Ref, sb *sandbox.Sandbox) (Load, error) {
	u, err := s.Usage(ctx, r)
	if err != nil {
		return Load{}, err
	}
	l := Load{Usage: u, At: time.Now().UTC()}
	if lived := l.At.Sub(sb.CreatedAt).Seconds(); lived > 0 {
		l.CPU = 100 * u.CPUSeconds / lived / float64(CPUs(sb))
	}
	return l, nil
}
