package main

import (
	"context"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) approvalsCommand() *cobra.Command {
	cmd, r := a.remoteGroup("approvals", "Approve or deny waiting tool calls",
		`A tool policy can require a confirmation before an agent's session or a response
calls a tool. Each call waits here until a user approves or denies it. At its
deadline Atoll denies it (tool_policy.confirm_within of the agent, or else the
setting confirmation_time: 7 days).`,
		`  atoll approvals list
  atoll approvals approve apr_0123456789abcdef0123456789abcdef
  atoll approvals deny apr_0123456789abcdef0123456789abcdef --reason "Ask the customer first."`, devKeyFile, map[string]completer{"APPROVAL": approvalIDs})
	cmd.AddCommand(r.approvalsList(), r.approvalsDecide("approve", "Approve a tool call", true), r.approvalsDecide("deny", "Deny a tool call", false))
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
	cmd.Flags().StringVar(&agent, "agent", "", "only approvals of the agent with this id")
	cmd.Flags().StringVar(&session, "session", "", "only approvals of this session")
	cmd.Flags().StringVar(&response, "response", "", "only approvals of this response")
	cmd.Flags().IntVar(&limit, "limit", 100, "approvals to list at most; 0 for all")
	return cmd
}

// askedBy returns the agent and session, or the response, that requested the call.
func askedBy(a *sdk.Approval) string {
	if a.SessionID == nil {
		return *or(a.ResponseID, "-")
	}
	return *or(a.AgentID, "-") + " " + *a.SessionID
}

// shortened cuts a text to the width of a table column.
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
	cmd.Flags().StringVar(&reason, "reason", "", "reason; the model reads the reason of a denial")
	return cmd
}

func approvalIDs(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Approvals(page()).All(ctx, maxNames)
	return namesOf(all, err, func(a sdk.Approval) string { return a.ID })
}
