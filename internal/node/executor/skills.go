package executor

import "github.com/atoll-run/atoll/internal/core/fault"

// loadSkills reads the folders of skills that the turn's sandbox has not: all of them for one
// that is new.
func (t *task) loadSkills() error {
	if t.turn == nil || len(t.job.Skills) == 0 {
		return nil
	}
	if t.sandbox == nil {
		t.turn.skills = nil
	}
	for _, of := range t.job.Skills {
		if t.turn.skills[of.Name] == of.Version {
			continue
		}
		if t.x.cfg.Skills == nil {
			return fault.New(fault.Unavailable, "this executor has no skills")
		}
		files, err := t.x.cfg.Skills.SkillFiles(t.ctx, t.job.Tenant, of)
		if fault.KindOf(err) == fault.NotFound {
			return fault.Wrap(fault.Conflict, err, "the skill "+of.Name+" was deleted")
		}
		if err != nil {
			return err
		}
		t.skills = append(t.skills, files...)
	}
	return nil
}

// placed notes that the turn's sandbox has the folders.
func (t *task) placed() {
	if t.turn == nil || len(t.skills) == 0 {
		return
	}
	if t.turn.skills == nil {
		t.turn.skills = map[string]string{}
	}
	for _, of := range t.job.Skills {
		t.turn.skills[of.Name] = of.Version
	}
	t.skills = nil
}
