package gateway

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/proof"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/infra/store/storetest"
)

// TestProofs checks that jobs for executors in other processes prove their files, and others not.
func TestProofs(t *testing.T) {
	p := &tenant.Principal{Tenant: tenant.Tenant{ID: "ten_1"}}
	c := Call{Turn: "t", Skills: []execution.SkillRef{{Name: "a", Version: "v"}}, Files: []execution.FileRef{{ID: "f", Path: "/a"}}}
	box := storetest.Box(t)
	for _, s := range []proof.Signer{nil, box} {
		g := &Gateway{cfg: Config{Signer: s}}
		job := g.job(p, &execution.Execution{}, execution.Request{}, c, nil)
		if skill, file := job.Skills[0].Proven(box, "ten_1"), job.Files[0].Proven(box, "ten_1"); skill != (s != nil) || file != (s != nil) {
			t.Errorf("with %v: skill %v, file %v", s, skill, file)
		}
		if job.Skills[0].Proven(box, "ten_2") || job.Files[0].Proven(box, "ten_2") {
			t.Error("the proof is of another tenant, too")
		}
	}
	if c.Skills[0].Proof != nil || c.Files[0].Proof != nil {
		t.Error("the call was changed")
	}
}
