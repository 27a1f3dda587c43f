package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/activity"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// activityCommand lists who ran what.
func (a *cli) activityCommand() *cobra.Command {
	r := &remote{target: target{app: a, local: devKeyFile}, printer: printer{out: a.std.out}}
	var f struct{ tenant, key, agent, session, turn, environment, sandbox, thread, kind, source, status, code string }
	var limit int
	var s *span
	cmd := r.command("activity", "List who ran what, newest first", `  atoll activity --since 24h
  atoll activity --agent agt_0123456789abcdef0123456789abcdef --status error
  atoll activity --tenant acme --kind command --since 1h --json`, cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			q := url.Values{}
			if err := cmp.Or(s.add(q), filter(q, map[string]string{
				"key": f.key, "agent": f.agent, "session_id": f.session, "turn_id": f.turn, "environment": f.environment, "sandbox_id": f.sandbox,
				"thread_id": f.thread, "kind": f.kind, "source": f.source, "status": f.status, "executed_code_hash": f.code,
			}, nil)); err != nil {
				return err
			}
			if f.tenant != "" {
				return r.showActivity(c.TenantActivity(f.tenant, q).All(ctx, limit))
			}
			return r.showActivity(c.Activity(q).All(ctx, limit))
		})
	cmd.Long = cmd.Short + `.

One entry for each execution, tool call, process, model request and decision on a
tool call. Unfinished executions have the status running. The column WHAT shows the
hash of the code, or its beginning if the tenant keeps texts ('atoll tenant set
NAME --audit-text'). With --tenant the command uses the admin key and shows that
tenant; without it, the tenant of the key.` + r.help() + "\n\nExit codes: 0 done, 1 not done, 2 a wrong command line."
	r.target.addFlags(cmd.Flags())
	r.printer.addFlags(cmd.Flags())
	cmd.PreRun = func(*cobra.Command, []string) {
		if f.tenant != "" {
			r.local = adminKeyFile
		}
	}
	s = addSpan(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "of this tenant, with an admin key")
	flags.StringVar(&f.key, "key", "", "of this key and its tokens, by id or name")
	flags.StringVar(&f.agent, "agent", "", "only approvals of the agent with this id")
	flags.StringVar(&f.session, "session", "", "only approvals of this session")
	flags.StringVar(&f.turn, "turn", "", "of this turn or response")
	flags.StringVar(&f.environment, "environment", "", "in this environment, by id or name")
	flags.StringVar(&f.sandbox, "sandbox", "", "in this named sandbox, by id")
	flags.StringVar(&f.thread, "thread", "", "with this thread's home directory")
	flags.StringVar(&f.kind, "kind", "", choices(activity.Kinds))
	flags.StringVar(&f.source, "source", "", "interface or tool that the caller used: execute, process, a tool such as shell, …")
	flags.StringVar(&f.status, "status", "", "running, ok, error, timeout, oom, cap_exceeded, provisioning or cancelled")
	flags.StringVar(&f.code, "code-sha256", "", "of code with this SHA-256")
	flags.IntVar(&limit, "limit", 100, "entries to list at most; 0 for all")
	return cmd
}

func (r *remote) showActivity(all []sdk.Activity, err error) error {
	if err != nil {
		return err
	}
	return r.print(all, func(w io.Writer) {
		row(w, "WHEN", "WHO", "WHAT", "WHERE", "STATUS", "MS", "CREDITS", "USD")
		for i := range all {
			e := &all[i]
			row(w, when(e.At), who(e), what(e), where(e), status(e), e.DurationMS, credits(e.Credits), money(e.CostUsd))
		}
	})
}

// who returns the name of the key, followed by the agent and its session.
func who(e *sdk.Activity) string {
	name := cmp.Or(e.KeyName, e.KeyID)
	if e.AgentID == "" {
		return name
	}
	of := e.AgentID
	if strings.HasPrefix(e.SessionID, "sess_") {
		of += " " + e.SessionID
	}
	return name + " " + of
}

// maxWhat limits the characters of a text in a table.
const maxWhat = 60

// what returns the tool or interface, followed by the code or its hash.
func what(e *sdk.Activity) string {
	name := cmp.Or(e.Tool, e.Source)
	if e.Text == nil {
		return name + " " + e.ExecutedCodeHash[:min(12, len(e.ExecutedCodeHash))]
	}
	line, _, more := strings.Cut(strings.TrimSpace(*e.Text), "\n")
	if text := []rune(line); more || len(text) > maxWhat {
		line = string(text[:min(maxWhat, len(text))]) + "…"
	}
	return name + " " + line
}

// where returns the environment, followed by the sandbox or thread.
func where(e *sdk.Activity) string {
	place := cmp.Or(e.EnvironmentName, e.EnvironmentID)
	if of := cmp.Or(e.SandboxID, e.ThreadID); of != "" {
		return place + " " + of
	}
	return place
}

// status returns an entry's status, with the reason of a failure.
func status(e *sdk.Activity) string {
	if e.Status == "ok" || e.FailureReason == "" {
		return e.Status
	}
	return fmt.Sprintf("%s: %s", e.Status, e.FailureReason)
}
