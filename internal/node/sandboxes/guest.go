package sandboxes

import (
	"context"
	"maps"
	"strings"

	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/guest/daemonclient"
)

// guest is a sandbox's daemon, which is told of what it starts the whole environment
// and the sandbox's limits.
type guest struct {
	*daemonclient.Client
	h *Handle
}

// Start implements process.Manager.
func (g guest) Start(ctx context.Context, spec process.Spec) (process.Info, error) {
	return g.Client.Start(ctx, g.h.complete(spec))
}

// Run implements process.Manager.
func (g guest) Run(ctx context.Context, spec process.Spec) (process.Output, error) {
	return g.Client.Run(ctx, g.h.complete(spec))
}

// complete adds to a spec what the sandbox's programs have: the image's variables, over
// them those of the environment, the key, the sandbox and the spec, each winning over
// those before it; and the limits.
func (h *Handle) complete(spec process.Spec) process.Spec {
	all := map[string]string{}
	if h.grant != nil {
		h.m.addSecrets(h.e, h.grant.Secrets)
		maps.Copy(all, h.grant.Variables)
	}
	maps.Copy(all, h.sb.Env)
	keep := spec.Keep
	for _, v := range spec.Env {
		name, value, _ := strings.Cut(v, "=")
		all[name], keep = value, append(keep, name)
	}
	spec.Env = spec.Isolation.Isolate(h.live.Environ(all), keep...)
	spec.Limits = process.Limits{Processes: h.sb.Limits.Processes, OpenFiles: h.sb.Limits.OpenFiles}
	return spec
}
