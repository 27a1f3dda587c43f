package control

import (
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/remote"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Calls about the builds of packages. See requirement.Store. An executor changes only its own builds.
const (
	ListWanted     remote.Call[remote.None, []requirement.Wanted] = "build.wanted"
	ListBuilds     remote.Call[string, []requirement.Build]       = "build.list"
	ListOwnBuilds  remote.Call[remote.None, []requirement.Build]  = "build.own"
	PutBuild       remote.Call[requirement.Build, remote.None]    = "build.put"
	DeleteBuild    remote.Call[string, remote.None]               = "build.delete"
	ListUsedImages remote.Call[remote.None, []string]             = "build.used_images"
)

// Calls about what jobs and the machine need.
const (
	ReadSkill    remote.Call[Skill, []execution.SkillFile] = "job.skill"
	ReadUpload   remote.Call[Upload, []byte]               = "job.file"
	ThreadExists remote.Call[Thread, bool]                 = "thread.exists"
	GetSandboxCA remote.Call[KnownCA, CA]                  = "setting.sandbox_ca"
)

// Skill is a skill of a tenant's job.
type Skill struct {
	Tenant tenant.ID
	Skill  execution.SkillRef
}

// Upload is an uploaded file of a tenant's job.
type Upload struct {
	Tenant tenant.ID
	File   execution.FileRef
}

// Thread names a thread.
type Thread struct {
	Tenant tenant.ID
	ID     string
}

// KnownCA is the Text of the CA that an executor has.
type KnownCA struct{ Text string }

// CA is the stored setting of the certificates that sandboxes trust.
type CA struct {
	Stored  bool   // false if each executor's own configuration applies
	Text    string // different certificates have different texts; "" for none
	Content []byte // PEM; nil if the executor has the Text
}
