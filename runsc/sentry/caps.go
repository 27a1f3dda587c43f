package main

import (
	"gvisor.dev/gvisor/pkg/sentry/platform"
	"gvisor.dev/gvisor/runsc/flag"
)

// dropCapsInPlace has the boot command give up its capabilities on every thread
// as it goes, rather than by starting itself anew without them, which costs 6 ms
// of each start. gVisor does so for a kernel in its caller's user namespace; one
// in a user namespace of its own has no rights from its beginning, so that there is
// nothing else to give up.
func dropCapsInPlace(f *flag.FlagSet) {
	if fl := f.Lookup("apply-caps"); fl != nil {
		_ = fl.Value.Set("true") // a truth value takes it
	}
	for _, name := range platform.List() {
		if p, err := platform.Lookup(name); err == nil {
			platform.Register(name, powerless{p})
		}
	}
}

// powerless is a platform that keeps no capability. Where gVisor drops them in
// place, it would keep the one with which a parent traces children that run as
// another user; ours run as the kernel does, and starting anew kept none.
type powerless struct{ platform.Constructor }

// Requirements implements platform.Constructor.
func (powerless) Requirements() platform.Requirements { return platform.Requirements{} }
