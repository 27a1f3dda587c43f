package execution

import "context"

// SkillRef is a skill whose folder the sandbox of a job has.
type SkillRef struct {
	Name    string // of the folder
	Version string // names its files
}

// SkillFile is a file of a skill's folder.
type SkillFile struct {
	Path string // absolute in the sandbox
	Exec bool
	Data []byte
}

// Skills has the files of skills.
type Skills interface {
	// SkillFiles returns the files of a version of a tenant's skill. One that there is not, or
	// not any more, is a NotFound fault.
	SkillFiles(ctx context.Context, tenant string, of SkillRef) ([]SkillFile, error)
}

// FileRef is an uploaded file of which the sandbox of a job has a copy.
type FileRef struct {
	ID   string
	Path string // absolute in the sandbox
}

// Uploads has the files that tenants have uploaded.
type Uploads interface {
	// Whole returns all bytes of a tenant's file. One that there is not, or not any more, is a
	// NotFound fault.
	Whole(ctx context.Context, tenant, id string) ([]byte, error)
}

// MaxCopies bounds the bytes of all uploaded files that a sandbox has copies of.
const MaxCopies = 8 << 20
