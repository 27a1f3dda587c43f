package main

import (
	"context"
	"errors"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/tty"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) sessionCommand() *cobra.Command {
	cmd, r := a.remoteGroup("session", "Talk to agents in sessions",
		`A session is a conversation with an agent. It keeps its history, and uses one
sandbox for all turns. 'atoll chat' is a session in the
terminal.`,
		`  atoll session create support
  atoll session send sess_0123456789abcdef0123456789abcdef "I want to return order 12345."
  atoll session events sess_0123456789abcdef0123456789abcdef --types message`, devKeyFile, map[string]completer{"AGENT": agentNames})
	cmd.AddCommand(r.sessionCreate(), r.sessionList(), r.sessionShow(), r.sessionContext(), r.sessionSend(), r.sessionApprove(), r.sessionEvents(), r.sessionFiles(), r.sessionInterrupt(), r.sessionArchive(), r.sessionDelete())
	return cmd
}

func (r *remote) sessionCreate() *cobra.Command {
	var in sdk.NewSession
	var title, environment, webhook string
	var vaults []string
	var version, tokens int64
	var dollars float64
	var cmd *cobra.Command
	cmd = r.command("create AGENT", "Start a session with an agent", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		in.AgentID, in.Title, in.AgentVersion = args[0], ifGiven(cmd, "title", &title), ifGiven(cmd, "version", &version)
		in.EnvironmentID, in.WebhookURL = ifGiven(cmd, "environment", &environment), ifGiven(cmd, "webhook-url", &webhook)
		if b := (sdk.SessionBudget{Tokens: ifGiven(cmd, "max-tokens", &tokens), CostUsd: ifGiven(cmd, "max-cost", &dollars)}); b != (sdk.SessionBudget{}) {
			in.Budget = &b
		}
		if len(vaults) > 0 {
			in.VaultIds = &vaults
		}
		made, err := c.CreateSession(ctx, in)
		switch {
		case err != nil:
			return err
		case r.quiet:
			return r.say("%s", made.ID)
		}
		return r.showSession(made)
	})
	cmd.Flags().BoolVarP(&r.quiet, "quiet", "q", false, "print only the session's id")
	cmd.Flags().StringVar(&title, "title", "", "title")
	cmd.Flags().Int64Var(&version, "version", 0, "version of the agent (the current one)")
	cmd.Flags().StringVar(&environment, "environment", "", "environment that the agent works in (the key's)")
	cmd.Flags().StringSliceVar(&vaults, "vault", nil, "id of a vault whose credentials the session uses; may be repeated")
	cmd.Flags().StringVar(&webhook, "webhook-url", "", "https URL that Atoll notifies when the session's state changes")
	cmd.Flags().Int64Var(&tokens, "max-tokens", 0, "most tokens for all turns together")
	cmd.Flags().Float64Var(&dollars, "max-cost", 0, "highest cost of all turns together, in US dollars")
	return cmd
}

func (r *remote) sessionList() *cobra.Command {
	var archived bool
	var limit int
	var agent string
	cmd := r.command("list", "List sessions, newest first", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		if agent != "" {
			of, err := c.Agent(ctx, agent)
			if err != nil {
				return err
			}
			agent = of.ID
		}
		all, err := c.Sessions(agent, archived).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"SESSION", "AGENT", "STATUS", "EVENTS", "CHANGED", "TITLE"}, func(s sdk.Session) []any {
			return []any{s.ID, s.AgentID, s.Status, s.Events, when(s.UpdatedAt), *or(s.Title, "-")}
		})(all)
	})
	cmd.Flags().StringVar(&agent, "agent", "", "only sessions of this agent")
	cmd.Flags().BoolVar(&archived, "archived", false, "also list archived ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "sessions to list at most; 0 for all")
	return cmd
}

func (r *remote) sessionShow() *cobra.Command {
	return r.command("show SESSION", "Show a session", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		got, err := c.Session(ctx, args[0])
		if err != nil {
			return err
		}
		return r.showSession(got)
	})
}

func (r *remote) sessionContext() *cobra.Command {
	return r.command("context SESSION", "Show the context of the next turn: instructions, skills and tools", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		got, err := c.SessionContext(ctx, args[0])
		if err != nil {
			return err
		}
		return r.print(got, func(w io.Writer) {
			row(w, "model", got.Model)
			for _, s := range got.Skills {
				row(w, "skill", s.Name)
			}
			for _, t := range got.Tools {
				row(w, "tool", t.Name)
			}
			row(w, "instructions", tty.Printable(got.Instructions))
		})
	})
}

func (r *remote) showSession(s sdk.Session) error {
	return r.print(s, func(w io.Writer) {
		row(w, "id", s.ID)
		row(w, "title", *or(s.Title, "-"))
		row(w, "agent", s.AgentID)
		row(w, "version", s.AgentVersion)
		row(w, "environment", s.EnvironmentID)
		row(w, "status", s.Status)
		row(w, "events", s.Events)
		row(w, "created", when(s.CreatedAt))
		row(w, "changed", when(s.UpdatedAt))
		row(w, "archived", whenOr(s.ArchivedAt, "-"))
	})
}

func (r *remote) sessionEvents() *cobra.Command {
	var types, thread string
	var limit int
	var last bool
	cmd := r.command("events SESSION", "List the events of a session, oldest first", "  atoll session events sess_0123456789abcdef0123456789abcdef --types message,tool_use", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			query := url.Values{"limit": {"100"}}
			if types != "" {
				query.Set("types", types)
			}
			if last {
				query.Set("order", "desc")
			}
			var all []sdk.SessionEvent
			var err error
			if thread != "" {
				all, err = c.ThreadEvents(args[0], thread, query).All(ctx, limit)
			} else {
				all, err = c.SessionEvents(args[0], query).All(ctx, limit)
			}
			if err != nil {
				return err
			}
			return listing(&r.printer, []any{"EVENT", "AT", "TYPE", "WHAT"}, func(e sdk.SessionEvent) []any {
				return []any{e.ID, when(e.CreatedAt), e.Type, cutLine(firstLine(aboutEvent(&e)))}
			})(all)
		})
	cmd.Flags().StringVar(&types, "types", "", "only events of these types, separated by commas")
	cmd.Flags().StringVar(&thread, "thread", "", "list the events of this thread of the session")
	cmd.Flags().IntVar(&limit, "limit", 0, "events at most (all)")
	cmd.Flags().BoolVar(&last, "last", false, "list the newest first")
	return cmd
}

func (r *remote) sessionFiles() *cobra.Command {
	var folder string
	var force bool
	cmd := r.command("files SESSION", "List the files that the agent has shared, oldest first; with --out, save them", "  atoll session files sess_0123456789abcdef0123456789abcdef --out .", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			all, err := c.SessionFiles(args[0]).All(ctx, 0)
			if err != nil {
				return err
			}
			if folder != "" {
				return r.app.saveSessionFiles(ctx, c, args[0], folder, force, all)
			}
			return listing(&r.printer, []any{"FILE", "AT", "BYTES", "NAME"}, func(f sdk.SessionFile) []any {
				return []any{f.ID, when(f.CreatedAt), f.Bytes, fileName(f.Filename)}
			})(all)
		})
	cmd.Flags().StringVar(&folder, "out", "", "folder for the files")
	cmd.Flags().BoolVar(&force, "force", false, "let --out replace existing files")
	return cmd
}

// saveSessionFiles saves what the agent of a session has shared. Of files of one name all are kept.
func (a *cli) saveSessionFiles(ctx context.Context, c *sdk.Client, session, folder string, force bool, all []sdk.SessionFile) error {
	var files []sharedItem
	for _, f := range all {
		files = append(files, sharedItem{id: f.ID, name: f.Filename})
	}
	return a.saveFiles(folder, force, files, func(id string, to io.Writer) error { return c.SessionFile(ctx, session, id, to) })
}

func (r *remote) sessionInterrupt() *cobra.Command {
	return r.command("interrupt SESSION", "Stop the current turn, or the wait for answers", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		if _, err := c.InterruptSession(ctx, args[0]); err != nil {
			return err
		}
		return r.say("interrupted %s", args[0])
	})
}

func (r *remote) sessionArchive() *cobra.Command {
	return r.command("archive SESSION…", "Archive sessions: they become read-only", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var errs []error
		for _, id := range args {
			_, err := c.ArchiveSession(ctx, id)
			if err == nil {
				err = r.say("archived %s", id)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (r *remote) sessionDelete() *cobra.Command {
	var force bool
	cmd := r.command("delete SESSION…", "Delete sessions with their events", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		return r.deletes(args, force, func(id string) error { return c.DeleteSession(ctx, id) })
	})
	addForce(cmd, &force)
	return cmd
}
