package execution

import (
	"slices"

	"github.com/atoll-run/atoll/internal/core/proof"
)

const (
	skillPurpose = "skill of a job"
	filePurpose  = "file of a job"
)

// ProveFiles adds proofs to j's skills and uploaded files. An executor that runs j shows them to a
// gateway, which otherwise returns no file of the tenant. Proofs do not expire: an executor can read
// these skills and files again while they exist.
func (j *Job) ProveFiles(s proof.Signer) {
	j.Skills, j.Files = slices.Clone(j.Skills), slices.Clone(j.Files) // the caller's have none
	for i := range j.Skills {
		j.Skills[i].Proof = proof.Of(s, skillPurpose, j.Tenant, j.Skills[i].Version)
	}
	for i := range j.Files {
		j.Files[i].Proof = proof.Of(s, filePurpose, j.Tenant, j.Files[i].ID)
	}
}

// Proven reports whether a gateway gave an executor a job of a tenant with this skill.
func (r *SkillRef) Proven(s proof.Signer, tenant string) bool {
	return proof.Check(s, r.Proof, skillPurpose, tenant, r.Version)
}

// Proven reports whether a gateway gave an executor a job of a tenant with this file.
func (r *FileRef) Proven(s proof.Signer, tenant string) bool {
	return proof.Check(s, r.Proof, filePurpose, tenant, r.ID)
}
