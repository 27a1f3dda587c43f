package sandboxes_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/atoll-run/atoll/internal/core/sandbox/sandboxtest"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/noderpc/noderpctest"
)

// TestContract tests the manager of this machine for callers on this machine and on others.
func TestContract(t *testing.T) {
	t.Parallel()
	m := start(t, nil)
	for name, node := range map[string]sandbox.Node{"local": m.Manager, "remote": noderpctest.Remote(t, m.Manager)} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Contract(t, sandboxtest.Rig{
				Node: node, Machine: m.Manager,
				Caller: func(as string, change ...func(*tenant.Principal)) *tenant.Principal {
					return m.caller(as+"-"+name, change...)
				},
				Image: "node:22",
				Elsewhere: func(t *testing.T, sb *sandbox.Sandbox, executor string) {
					sb.Executor = executor
					if there, err := m.db.Sandboxes().Create(t.Context(), sb, sandbox.Quota{}); there != nil || err != nil {
						t.Fatal(there, err)
					}
				},
			})
		})
	}
}
