package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) templateCommand() *cobra.Command {
	cmd, r := a.remoteGroup("template", "Create, show and change agent templates",
		`An agent template is a population of agents that opts in to the sandbox
together: execute_code names one, and runs only if it has opted in.`,
		`  atoll template set acme support --sandbox internal-only
  atoll template set acme support --sandbox off
  atoll template list acme`, adminKeyFile, map[string]completer{"TENANT": tenantNames, "NAME": templateNames})

	var network string
	set := r.command("set TENANT NAME", "Create or change a template", "  atoll template set acme support --sandbox internal-only", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			var in sdk.TemplateChange
			if network != "off" {
				in.Sandbox = &sdk.TemplateSandbox{Environment: network}
			}
			t, err := c.PutTemplate(ctx, args[0], args[1], in)
			if err != nil {
				return err
			}
			return r.showTemplate(t)
		})
	set.Flags().StringVar(&network, "sandbox", "off", "default-public (the environment's network; if it has none, public addresses), internal-only (no network), or off")

	cmd.AddCommand(
		r.command("list TENANT", "List a tenant's templates", "", cobra.ExactArgs(1), shows(allOf((*sdk.Client).Templates),
			listing(&r.printer, []any{"NAME", "SANDBOX"}, templateCells))),
		r.command("show TENANT NAME", "Show a template", "", cobra.ExactArgs(2), shows(two((*sdk.Client).Template), r.showTemplate)),
		set,
		r.deletion("TENANT", "NAME", "Delete templates", "", func(ctx context.Context, c *sdk.Client, lead []string, name string) error {
			return c.DeleteTemplate(ctx, lead[0], name)
		}))
	return cmd
}

func (r *remote) showTemplate(t sdk.Template) error {
	return r.print(t, func(w io.Writer) { row(w, templateCells(t)...) })
}

func templateCells(t sdk.Template) []any {
	sandbox := "off"
	if t.Sandbox != nil {
		sandbox = t.Sandbox.Environment
	}
	return []any{t.Name, sandbox}
}
