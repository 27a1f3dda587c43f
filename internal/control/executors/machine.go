package executors

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// maxName limits the names of references and images that an executor reports, in bytes.
const maxName = 512

// PutBuild records a build of the executor.
func (s *Service) PutBuild(ctx context.Context, from string, b requirement.Build) error {
	switch b.State {
	case requirement.Building, requirement.Ready, requirement.Failed:
	default:
		return fault.New(fault.Invalid, "the executor reported the build state %.40q, which cannot be; run the same version on all servers", b.State)
	}
	if b.Ref == "" || len(b.Ref) > maxName || len(b.Image) > maxName {
		return fault.New(fault.Invalid, "the executor reported the build of %.80q, which is no reference; run the same version on all servers", b.Ref)
	}
	b.Executor, b.UpdatedAt = from, past(b.UpdatedAt)
	var tail requirement.Tail // limits lines
	for _, line := range b.Log[max(0, len(b.Log)-requirement.MaxLines):] {
		tail.Say(line)
	}
	b.Log = tail.Lines()
	return s.cfg.Builds.Put(ctx, b)
}

// SkillFiles returns the files of a skill of a job that a gateway offered to executors.
func (s *Service) SkillFiles(ctx context.Context, in control.Skill) ([]execution.SkillFile, error) {
	if !in.Skill.Proven(s.cfg.Signer, in.Tenant) {
		return nil, skill.ErrNoVersion
	}
	return s.cfg.Skills.SkillFiles(ctx, in.Tenant, in.Skill)
}

// Upload returns an uploaded file of a job that a gateway offered to executors.
func (s *Service) Upload(ctx context.Context, in control.Upload) ([]byte, error) {
	if !in.File.Proven(s.cfg.Signer, in.Tenant) {
		return nil, upload.ErrNotFound
	}
	return s.cfg.Uploads.Whole(ctx, in.Tenant, in.File)
}

// sandboxCA is the setting of the certificates that sandboxes trust.
const sandboxCA = "sandbox_ca_bundle"

// SandboxCA returns the stored setting of the certificates that sandboxes trust.
func (s *Service) SandboxCA(ctx context.Context, known control.KnownCA) (control.CA, error) {
	all, err := s.cfg.Settings.Settings(ctx)
	if err != nil {
		return control.CA{}, err
	}
	text, ok := all[sandboxCA]
	ca := control.CA{Stored: ok, Text: text}
	if text != "" && text != known.Text {
		ca.Content, err = s.cfg.Settings.SettingContent(ctx, sandboxCA)
	}
	return ca, err
}
