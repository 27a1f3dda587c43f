package skill

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Skill is a folder of instructions and files that agents may use.
type Skill struct {
	ID              string      `json:"id" doc:"skill_ and 32 hexadecimal digits."`
	Type            string      `json:"type" enum:"skill"`
	Name            string      `json:"name" doc:"The name in SKILL.md, which is also the folder's name in sandboxes."`
	DisplayName     string      `json:"display_name"`
	Description     string      `json:"description" doc:"Description of the latest version."`
	Source          SkillSource `json:"source" doc:"Where it comes from."`
	LatestVersionID string      `json:"latest_version_id" doc:"The id of its newest version."`
	LatestVersion   int         `json:"latest_version" doc:"Its number."`
	CreatedAt       time.Time   `json:"created_at"`
	UpdatedAt       time.Time   `json:"updated_at" doc:"When the latest version was made."`
	ArchivedAt      *time.Time  `json:"archived_at"`
}

// SkillSource says where a skill comes from.
type SkillSource struct {
	Type string `json:"type" enum:"custom"`
}

// SkillVersion is a version of a skill. It does not change.
type SkillVersion struct {
	ID            string            `json:"id" doc:"skillver_ and 32 hexadecimal digits."`
	Type          string            `json:"type" enum:"skill_version"`
	SkillID       string            `json:"skill_id" doc:"The skill that it is a version of."`
	Version       int               `json:"version" doc:"Its number, from 1."`
	Name          string            `json:"name"`
	Description   string            `json:"description"`
	License       *string           `json:"license" doc:"The license that SKILL.md names; null if it names none."`
	Compatibility *string           `json:"compatibility" doc:"Requirements of the skill, in its author's words; null if SKILL.md names none."`
	AllowedTools  []string          `json:"allowed_tools" doc:"As SKILL.md has them. They grant nothing: the agent's policy decides."`
	Metadata      map[string]string `json:"metadata" doc:"As SKILL.md has them."`
	Files         []SkillFile       `json:"files" doc:"The files, by path."`
	CreatedAt     time.Time         `json:"created_at"`
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path       string `json:"path" doc:"In the skill's folder."`
	Size       int64  `json:"size" doc:"Bytes."`
	Executable bool   `json:"executable" doc:"Whether it may be run."`
}

// DeletedSkill says that a skill is gone.
type DeletedSkill struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"skill_deleted"`
}

// DeletedSkillVersion says that a version of a skill is gone.
type DeletedSkillVersion struct {
	ID   string `json:"id"`
	Type string `json:"type" enum:"skill_version_deleted"`
}

func skillOf(s *skill.Skill) Skill {
	out := Skill{
		ID: string(s.ID), Type: "skill", Name: s.Name, DisplayName: s.Title, Description: s.Latest.Head.Description, Source: SkillSource{"custom"},
		LatestVersionID: string(s.Latest.ID), LatestVersion: s.Latest.Number, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	if out.DisplayName == "" {
		out.DisplayName = s.Name
	}
	if s.Archived() {
		out.ArchivedAt = &s.ArchivedAt
	}
	return out
}

func versionOf(v *skill.Version) SkillVersion {
	out := SkillVersion{
		ID: string(v.ID), Type: "skill_version", SkillID: string(v.Skill), Version: v.Number, Name: v.Head.Name, Description: v.Head.Description,
		License: httpapi.OrNull(v.Head.License), Compatibility: httpapi.OrNull(v.Head.Compatibility), AllowedTools: []string{}, Metadata: map[string]string{}, CreatedAt: v.CreatedAt,
		Files: httpapi.Each(v.Files, func(f skill.FileInfo) SkillFile { return SkillFile{f.Path, f.Size, f.Exec} }),
	}
	if v.Head.AllowedTools != nil {
		out.AllowedTools = v.Head.AllowedTools
	}
	if v.Head.Metadata != nil {
		out.Metadata = v.Head.Metadata
	}
	return out
}
