package main

import (
	"context"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) approvalsCommand() *cobra.Command {
	cmd, r := a.remoteGroup("approvals", "Decide over tool calls that wait",
		`Agents' sessions and responses ask before they make tool calls that a policy has
them confirm. Each call waits here until somebody approves or denies it, or until
its deadline, which denies it (tool_policy.confirm_within of the agent, else the
setting confirmation_time: 7 days).`,
		`  atoll approvals list
  atoll approvals approve apr_0123456789abcdef0123456789abcdef
  atoll approvals deny apr_0123456789abcdef0123456789abcdef --reason "Ask the customer first."`, devKeyFile, map[string]completer{"APPROVAL": approvalIDs})
	cmd.AddCommand(r.approvalsList(), r.approvalsDecide("approve", "Have a tool call made", true), r.approvalsDecide("deny", "Have a tool call not made", false))
	return cmd
}

func (r *remote) approvalsList() *cobra.Command {
	var status, agent, session, response string
	var limit int
	cmd := r.command("list", "List tool calls that wait for a decision, newest first", "  atoll approvals list --status all --agent agt_…", cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			q := url.Values{}
			if err := filter(q, map[string]string{"status": status, "agent": agent, "session_id": session, "response_id": response}, nil); err != nil {
				return err
			}
			all, err := c.Approvals(q).All(ctx, limit)
			if err != nil {
				return err
			}
			return listing(&r.printer, []any{"APPROVAL", "STATUS", "TOOL", "ARGUMENTS", "ASKED BY", "SINCE", "UNTIL", "REASON"}, func(a sdk.Approval) []any {
				until := "-"
				if a.ExpiresAt != nil {
					until = when(*a.ExpiresAt)
				}
				return []any{a.ID, a.Status, a.Tool, shortened(a.Arguments), askedBy(&a), when(a.CreatedAt), until, *or(a.Reason, "-")}
			})(all)
		})
	cmd.Flags().StringVar(&status, "status", "", "pending, approved, denied, expired, cancelled or all (pending)")
	cmd.Flags().StringVar(&agent, "agent", "", "of this agent, by id")
	cmd.Flags().StringVar(&session, "session", "", "of this session")
	cmd.Flags().StringVar(&response, "response", "", "of this response")
	cmd.Flags().IntVar(&limit, "limit", 100, "approvals at most; 0 for all")
	return cmd
}

// askedBy names the agent and its session, or the response.
func askedBy(a *sdk.Approval) string {
	if a.SessionID == nil {
		return *or(a.ResponseID, "-")
	}
	return *or(a.AgentID, "-") + " " + *a.SessionID
}

// shortened is a text as a line of a table.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxWhat {
		return string(runes[:maxWhat]) + "…"
	}
	return text
}

func (r *remote) approvalsDecide(verb, short string, approve bool) *cobra.Command {
	var reason string
	var cmd *cobra.Command
	cmd = r.command(verb+" APPROVAL", short, "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		a, err := c.DecideApproval(ctx, args[0], sdk.Decision{Approve: approve, Reason: ifGiven(cmd, "reason", &reason)})
		if err != nil {
			return err
		}
		return r.print(a, func(w io.Writer) {
			row(w, a.ID, a.Status, a.Tool, "continued by", *or(a.ContinuedBy, "nothing yet: other calls wait"))
		})
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why; the model reads the reason of a denial")
	return cmd
}

func approvalIDs(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Approvals(page()).All(ctx, maxNames)
	return namesOf(all, err, func(a sdk.Approval) string { return a.ID })
}
