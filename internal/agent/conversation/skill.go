package conversation

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/pooltool"
	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/agent/skilltool"
	"github.com/atoll-run/atoll/internal/core/agent"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/session"
)

// skills returns the skills of an agent in the next turn of a session.
func (s *Service) skills(ctx context.Context, of *session.Session, d *agent.Definition) (*skilltool.Set, error) {
	var uses []skilltool.Use
	var state *skilltool.Document
	for i, k := range d.Skills {
		use := skilltool.Use{Skill: run.Skill{Name: k.Name, Version: string(k.Version), Config: k.Config}}
		if k.Custom() {
			v, err := s.Skills.Version(ctx, of.Tenant, k.Version)
			if fault.KindOf(err) == fault.NotFound {
				return nil, fault.New(fault.Conflict, "agent: skills[%d]: the version of the skill %s that the agent has was deleted: give the agent another one, and begin another session", i, k.Name)
			}
			if err != nil {
				return nil, err
			}
			use.Description = v.Head.Description
		}
		if k.Name == skilltool.State && of.Run == "" && of.Queued == 0 { // else the turns before this one may change it
			var err error
			if state, err = skilltool.StateOf(ctx, s.Store, of.Tenant, of.ID); err != nil {
				return nil, err
			}
		}
		uses = append(uses, use)
	}
	code := sandboxtool.RunCode
	if d.Pooled() {
		code = pooltool.ExecCode
	}
	return skilltool.NewSet(uses, state, code)
}
