package execution

import "context"

// SkillRef names a skill whose directory the job's sandbox mounts.
type SkillRef struct {
	Name    string // of the directory
	Version string // identifies its files
	// Proof lets an executor in a process of its own read the files; nil elsewhere.
	Proof []byte `json:",omitempty"`
}

// SkillFile is a file in a skill's directory.
type SkillFile struct {
	Path string // absolute in the sandbox
	Exec bool
	Data []byte
}

// Skills reads the files of skills.
type Skills interface {
	// SkillFiles returns the files of a version of a tenant's skill. It returns a NotFound fault if
	// the version does not exist.
	SkillFiles(ctx context.Context, tenant string, of SkillRef) ([]SkillFile, error)
}

// FileRef is an uploaded file that Atoll copies into the job's sandbox.
type FileRef struct {
	ID   string
	Path string // absolute in the sandbox
	// Proof lets an executor in a process of its own read the file; nil elsewhere.
	Proof []byte `json:",omitempty"`
}

// Uploads reads the files that tenants uploaded.
type Uploads interface {
	// Whole returns the contents of a tenant's file. It returns a NotFound fault if the file does
	// not exist or has expired.
	Whole(ctx context.Context, tenant string, of FileRef) ([]byte, error)
}

// MaxCopies limits the total bytes of uploaded files that Atoll copies into a sandbox.
const MaxCopies = 8 << 20
