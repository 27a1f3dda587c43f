package executor

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// loadSkills reads the folders of skills and the uploaded files that the turn's sandbox has not:
// all of them for one that is new.
func (t *task) loadSkills() error {
	if t.job.Turn == "" {
		return nil
	}
	if t.turn != nil && t.sandbox == nil { // also for a job without any: one after it may have some
		t.turn.skills = nil
	}
	has := t.turn.placedSkills()
	for _, of := range t.job.Skills {
		if has[of.Name] == of.Version {
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
	return t.loadFiles(has)
}

func (t *task) loadFiles(has map[string]string) error {
	for _, of := range t.job.Files {
		if has[of.Path] == of.ID {
			continue
		}
		if t.x.cfg.Uploads == nil {
			return fault.New(fault.Unavailable, "this executor has no uploaded files")
		}
		data, err := t.x.cfg.Uploads.Whole(t.ctx, t.job.Tenant, of)
		if err != nil && fault.KindOf(err) == fault.NotFound {
			return fault.Wrap(fault.Conflict, err, "the file "+of.ID+", which the session has at "+of.Path+", was deleted or has expired")
		}
		if err != nil {
			return err
		}
		t.skills = append(t.skills, execution.SkillFile{Path: of.Path, Data: data})
	}
	return nil
}

// placed notes that the turn's sandbox has the folders and files.
func (t *task) placed() {
	if len(t.skills) == 0 {
		return
	}
	t.turn.placed(&t.job)
	t.skills = nil
}

// placedSkills is what the turn's sandbox has: nothing, where the turn goes on elsewhere.
func (u *turn) placedSkills() map[string]string {
	if u == nil {
		return nil
	}
	return u.skills
}

// placed notes that the sandbox has the folders and files of a job whose program began.
func (u *turn) placed(job *execution.Job) {
	if u == nil {
		return
	}
	if u.skills == nil && len(job.Skills)+len(job.Files) > 0 {
		u.skills = map[string]string{}
	}
	for _, of := range job.Skills {
		u.skills[of.Name] = of.Version
	}
	for _, of := range job.Files {
		u.skills[of.Path] = of.ID
	}
}
