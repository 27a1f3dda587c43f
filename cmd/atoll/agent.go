package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) agentCommand() *cobra.Command {
	cmd, r := a.remoteGroup("agent", "Create, show and change agents",
		`An agent is a model with instructions and tools, and has versions. FILE is YAML with the fields of POST /v1/agents, - for stdin. These are
the agents of one tenant: the one whose key this is.`,
		`  atoll agent apply support.yaml sales.yaml
  atoll agent list
  atoll agent show support --version 1`, devKeyFile, map[string]completer{"AGENT": agentNames})
	cmd.AddCommand(r.agentCreate(), r.agentList(), r.agentShow(), r.agentUpdate(), r.agentVersions(), r.agentCopy(), r.agentArchive(), r.agentDelete(), r.agentApply())
	return cmd
}

func agentNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Agents(false).All(ctx, maxNames)
	return namesOf(all, err, agentName)
}

// agentName is the shorter one of the names that an agent has.
func agentName(a sdk.Agent) string {
	if a.Slug != nil {
		return *a.Slug
	}
	return a.ID
}

func (r *remote) agentCreate() *cobra.Command {
	return r.command("create FILE", "Create an agent", "  atoll agent create support.yaml", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		all, err := readAgents[sdk.NewAgent](r.app, args[0])
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fmt.Errorf("%s has %d documents; 'atoll agent apply' takes several", args[0], len(all))
		}
		made, err := c.CreateAgent(ctx, all[0])
		if err != nil {
			return err
		}
		return r.showAgent(made)
	})
}

func (r *remote) agentList() *cobra.Command {
	var archived bool
	var limit int
	cmd := r.command("list", "List agents, newest first", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		all, err := c.Agents(archived).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"AGENT", "NAME", "MODEL", "VERSION", "CHANGED", "ARCHIVED"}, func(a sdk.Agent) []any {
			return []any{agentName(a), a.Name, a.Model.Name, a.Version, when(a.UpdatedAt), whenOr(a.ArchivedAt, "-")}
		})(all)
	})
	cmd.Flags().BoolVar(&archived, "archived", false, "also list archived ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "agents to list at most; 0 for all")
	return cmd
}

func (r *remote) agentShow() *cobra.Command {
	var version int64
	cmd := r.command("show AGENT", "Show an agent", "  atoll agent show support --version 1 --json", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var got sdk.Agent
		var err error
		if version == 0 {
			got, err = c.Agent(ctx, args[0])
		} else {
			got, err = c.AgentVersion(ctx, args[0], version)
		}
		if err != nil {
			return err
		}
		return r.showAgent(got)
	})
	cmd.Flags().Int64Var(&version, "version", 0, "version (the current one)")
	return cmd
}

func (r *remote) agentUpdate() *cobra.Command {
	return r.command("update AGENT FILE", "Change the fields of an agent that a file sets",
		`  atoll agent update support change.yaml
  echo 'system: Be kind.' | atoll agent update support -`, cobra.ExactArgs(2), func(ctx context.Context, c *sdk.Client, args []string) error {
			all, err := readAgents[sdk.AgentChange](r.app, args[1])
			if err != nil {
				return err
			}
			if len(all) != 1 {
				return fmt.Errorf("%s has %d documents, want 1", args[1], len(all))
			}
			change := all[0]
			if change.Version == 0 { // it does not say for which version it was made
				now, err := c.Agent(ctx, args[0])
				if err != nil {
					return err
				}
				change.Version = now.Version
			}
			made, err := c.ChangeAgent(ctx, args[0], change)
			if err != nil {
				return err
			}
			return r.showAgent(made)
		})
}

func (r *remote) agentVersions() *cobra.Command {
	var limit int
	cmd := r.command("versions AGENT", "List the versions of an agent, newest first", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		all, err := c.AgentVersions(args[0]).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"VERSION", "MADE", "NAME", "MODEL", "TOOLS"}, func(a sdk.Agent) []any {
			return []any{a.Version, when(a.UpdatedAt), a.Name, a.Model.Name, len(a.Tools)}
		})(all)
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "versions to list at most; 0 for all")
	return cmd
}

func (r *remote) agentCopy() *cobra.Command {
	var slug, name string
	var cmd *cobra.Command
	cmd = r.command("copy AGENT", "Copy an agent, or the template of another tenant by its id; headers of servers are not copied", "  atoll agent copy support --slug support-de", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			made, err := c.CopyAgent(ctx, args[0], sdk.AgentCopy{Slug: ifGiven(cmd, "slug", &slug), Name: ifGiven(cmd, "name", &name)})
			if err != nil {
				return err
			}
			return r.showAgent(made)
		})
	cmd.Flags().StringVar(&slug, "slug", "", "slug of the copy (none)")
	cmd.Flags().StringVar(&name, "name", "", "name of the copy (the agent's)")
	return cmd
}

func (r *remote) agentArchive() *cobra.Command {
	return r.command("archive AGENT…", "Archive agents: they become read-only", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var errs []error
		for _, name := range args {
			_, err := c.ArchiveAgent(ctx, name)
			if err == nil {
				err = r.say("archived %s", name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (r *remote) agentDelete() *cobra.Command {
	return r.command("delete AGENT…", "Delete agents that have no sessions, with their versions", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var errs []error
		for _, name := range args {
			err := c.DeleteAgent(ctx, name)
			if err == nil {
				err = r.say("deleted %s", name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (r *remote) showAgent(a sdk.Agent) error {
	return r.print(a, func(w io.Writer) {
		row(w, "name", a.Name)
		row(w, "id", a.ID)
		row(w, "slug", *or(a.Slug, "-"))
		row(w, "version", a.Version)
		row(w, "model", a.Model.Name)
		var tools, servers []string
		for _, t := range a.Tools {
			of := t.Type
			for _, name := range []*string{t.Server, t.Name} {
				if name != nil {
					of += " " + *name
				}
			}
			tools = append(tools, of)
		}
		for _, s := range a.McpServers {
			at := s.Name
			for _, part := range []*string{s.URL, s.Command} {
				if part != nil {
					at += " " + *part
				}
			}
			servers = append(servers, at)
		}
		var skills []string
		for _, k := range a.Skills {
			skills = append(skills, k.Name)
		}
		row(w, "skills", names(&skills))
		row(w, "tools", strings.Join(tools, ", "))
		row(w, "servers", strings.Join(servers, ", "))
		row(w, "allowed", namesOrAll(a.ToolPolicy.AllowList))
		row(w, "denied", names(a.ToolPolicy.DenyList))
		row(w, "to confirm", names(a.ToolPolicy.RequireConfirmation))
		row(w, "created", when(a.CreatedAt))
		row(w, "changed", when(a.UpdatedAt))
		row(w, "archived", whenOr(a.ArchivedAt, "-"))
		for _, warning := range a.Warnings {
			row(w, "warning", warning.Path+": "+warning.Message)
		}
	})
}

func names(list *[]string) string {
	if list == nil || len(*list) == 0 {
		return "none"
	}
	return strings.Join(*list, ", ")
}

func namesOrAll(list *[]string) string {
	if list == nil {
		return "all"
	}
	return names(list)
}
