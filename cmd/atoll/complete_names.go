package main

import (
	"context"
	"net/url"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// maxNames bounds how many names of one kind a shell is offered.
const maxNames = 200

// The completers of what a server has. Where a name belongs to a tenant, the
// tenant is the first argument.

func tenantNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Tenants().All(ctx, 0)
	return namesOf(all, err, func(t sdk.Tenant) string { return t.Name })
}

func planNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Plans().All(ctx, 0)
	return namesOf(all, err, func(p sdk.Plan) string { return p.Name })
}

func envNames(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Environments(args[0]).All(ctx, 0)
	return namesOf(all, err, func(e sdk.Environment) string { return e.Name })
}

func keyNames(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Keys(args[0]).All(ctx, 0)
	return namesOf(all, err, func(k sdk.Key) string { return k.Name })
}

func templateNames(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Templates(args[0]).All(ctx, 0)
	return namesOf(all, err, func(t sdk.Template) string { return t.Name })
}

func slugs(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Connections(args[0]).All(ctx, 0)
	return namesOf(all, err, func(n sdk.Connection) string { return n.Slug })
}

func grantIDs(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Grants(args[0], args[1]).All(ctx, 0)
	return namesOf(all, err, func(g sdk.Grant) string { return g.ID })
}

func threadNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Threads(page()).All(ctx, maxNames)
	return namesOf(all, err, func(t sdk.Thread) string { return t.ThreadID })
}

func traceIDs(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Executions(page()).All(ctx, maxNames)
	return namesOf(all, err, func(e sdk.ExecutionSummary) string { return e.TraceID })
}

func snapshotIDs(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Snapshots().All(ctx, maxNames)
	return namesOf(all, err, func(s sdk.Snapshot) string { return s.SnapshotID })
}

// page asks for as many at once as one answer has.
func page() url.Values { return url.Values{"limit": {"100"}} }
