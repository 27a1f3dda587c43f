package control

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/remote/control"
	"github.com/atoll-run/atoll/internal/core/requirement"
)

// Builds implements requirement.Store for the executor of the Client.
type Builds struct{ *Client }

var _ requirement.Store = Builds{}

// Wanted implements requirement.Store.
func (b Builds) Wanted(ctx context.Context) ([]requirement.Wanted, error) {
	return repeat(ctx, b.Client, control.ListWanted, none)
}

// Builds implements requirement.Store.
func (b Builds) Builds(ctx context.Context, ref string) ([]requirement.Build, error) {
	return repeat(ctx, b.Client, control.ListBuilds, ref)
}

// Of implements requirement.Store. It returns the builds of this executor, whatever the argument.
func (b Builds) Of(ctx context.Context, _ string) ([]requirement.Build, error) {
	return repeat(ctx, b.Client, control.ListOwnBuilds, none)
}

// Put implements requirement.Store for builds of this executor.
func (b Builds) Put(ctx context.Context, build requirement.Build) error {
	return done(repeat(ctx, b.Client, control.PutBuild, build))
}

// Retry returns a Forbidden fault: it deletes builds of all executors.
func (b Builds) Retry(context.Context, string) error {
	return fault.New(fault.Forbidden, "an executor cannot delete the builds of others; retry the build on a gateway")
}

// Delete implements requirement.Store for builds of this executor, whatever the last argument.
func (b Builds) Delete(ctx context.Context, ref, _ string) error {
	return done(repeat(ctx, b.Client, control.DeleteBuild, ref))
}

// UsedImages implements requirement.Store.
func (b Builds) UsedImages(ctx context.Context) ([]string, error) {
	return repeat(ctx, b.Client, control.ListUsedImages, none)
}

var (
	_ execution.Skills  = (*Client)(nil)
	_ execution.Uploads = (*Client)(nil)
)

// SkillFiles implements execution.Skills for the skills of jobs.
func (c *Client) SkillFiles(ctx context.Context, tenantID string, of execution.SkillRef) ([]execution.SkillFile, error) {
	return repeat(ctx, c, control.ReadSkill, control.Skill{Tenant: tenantID, Skill: of})
}

// Whole implements execution.Uploads for the files of jobs.
func (c *Client) Whole(ctx context.Context, tenantID string, of execution.FileRef) ([]byte, error) {
	return repeat(ctx, c, control.ReadUpload, control.Upload{Tenant: tenantID, File: of})
}

// ThreadExists reports whether a tenant has a thread.
func (c *Client) ThreadExists(ctx context.Context, tenantID, id string) (bool, error) {
	return repeat(ctx, c, control.ThreadExists, control.Thread{Tenant: tenantID, ID: id})
}

// SandboxCA returns the stored setting of the certificates that sandboxes trust. The executor has the
// certificates of the text known, "" for none. If the setting has this text, its Content is nil.
func (c *Client) SandboxCA(ctx context.Context, known string) (control.CA, error) {
	return repeat(ctx, c, control.GetSandboxCA, control.KnownCA{Text: known})
}

// AwaitSandboxCA is SandboxCA for the start of an executor: it waits for a gateway until ctx ends.
func (c *Client) AwaitSandboxCA(ctx context.Context) (control.CA, error) {
	return await(ctx, c, control.GetSandboxCA, control.KnownCA{})
}
