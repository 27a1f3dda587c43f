package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/adminapi"
	"github.com/atoll-run/atoll/internal/httpapi"
)

func (a *app) templateCommand() *cobra.Command {
	cmd, r := a.remoteGroup("template", "Make, show and change agent templates",
		`An agent template is a population of agents that opts in to the sandbox
together: execute_code names one, and runs only if it has opted in.`,
		`  atoll template set acme support --sandbox internal-only
  atoll template set acme support --sandbox off
  atoll template list acme`, adminKeyFile)

	var network string
	set := r.command("set TENANT NAME", "Make a template, or change it", "  atoll template set acme support --sandbox internal-only", cobra.ExactArgs(2),
		func(ctx context.Context, c *adminapi.Client, args []string) error {
			var in httpapi.TemplateChange
			if network != "off" {
				in.Sandbox = &httpapi.TemplateSandbox{Environment: network}
			}
			t, err := c.PutTemplate(ctx, args[0], args[1], in)
			if err != nil {
				return err
			}
			return r.print(t, func(w io.Writer) { templateRow(w, t) })
		})
	set.Flags().StringVar(&network, "sandbox", "off", "internal-only, default-public (not available yet: calls fail), or off")

	cmd.AddCommand(
		r.command("list TENANT", "List a tenant's templates", "", cobra.ExactArgs(1), func(ctx context.Context, c *adminapi.Client, args []string) error {
			all, err := c.Templates(ctx, args[0])
			if err != nil {
				return err
			}
			return r.print(all, func(w io.Writer) {
				row(w, "NAME", "SANDBOX")
				for _, t := range all {
					templateRow(w, t)
				}
			})
		}),
		r.command("show TENANT NAME", "Show a template", "", cobra.ExactArgs(2), func(ctx context.Context, c *adminapi.Client, args []string) error {
			t, err := c.Template(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return r.print(t, func(w io.Writer) { templateRow(w, t) })
		}),
		set,
		r.command("delete TENANT NAME", "Remove a template", "", cobra.ExactArgs(2), func(ctx context.Context, c *adminapi.Client, args []string) error {
			if err := c.DeleteTemplate(ctx, args[0], args[1]); err != nil {
				return err
			}
			return r.said("removed %s", args[1])
		}))
	return cmd
}

func templateRow(w io.Writer, t httpapi.Template) {
	sandbox := "off"
	if t.Sandbox != nil {
		sandbox = t.Sandbox.Environment
	}
	row(w, t.Name, sandbox)
}
