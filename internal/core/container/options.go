package container

import (
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// memoryLimits are sizes of containers, in bytes.
var memoryLimits = map[string]int64{"1g": 1 << 30, "4g": 4 << 30, "16g": 16 << 30, "64g": 64 << 30}

// MemoryLimit returns the name of a size; nil for one that has none.
func MemoryLimit(bytes int64) *string {
	for name, size := range memoryLimits {
		if size == bytes {
			return &name
		}
	}
	return nil
}

// Memory returns the bytes of a size that a request names, within what an environment has.
func Memory(path, name string, env *tenant.Environment) (int64, error) {
	memory, most := memoryLimits[name], env.Limits.Memory
	if memory > most {
		return 0, fault.New(fault.Invalid, "%smemory_limit: sandboxes of this environment have %s, so %s is too much; omit it, or ask the operator to raise the environment's limit",
			path, runtime.FormatBytes(most), name)
	}
	return memory, nil
}

// Network narrows an environment's network to hosts, or closes it if open is false.
func Network(path string, env runtime.NetworkPolicy, open bool, hosts []string) (*runtime.NetworkPolicy, error) {
	no := false
	change := tenant.PermissionsChange{Network: &no}
	switch {
	case open && len(hosts) == 0:
		return nil, fault.New(fault.Invalid, "%s.allowed_domains is required with allowlist", path)
	case open && env.Blocked():
		return nil, fault.New(fault.Invalid, "%s: this environment has no network", path)
	case open:
		change = tenant.PermissionsChange{AnyAddress: &no, AllowedHosts: &hosts}
	case len(hosts) > 0:
		return nil, fault.New(fault.Invalid, "%s.allowed_domains has a meaning with allowlist only", path)
	}
	policy, err := change.NetworkOver(env)
	if err != nil {
		return nil, fault.New(fault.KindOf(err), "%s: %s", path, err)
	}
	return &policy, nil
}
