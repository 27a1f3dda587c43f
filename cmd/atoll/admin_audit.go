package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/audit"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// span are the flags that select a time.
type span struct{ since, before string }

func addSpan(cmd *cobra.Command) *span {
	s := &span{}
	cmd.Flags().StringVar(&s.since, "since", "", "from this time on: a date, a time in RFC 3339, or how long ago, such as 24h")
	cmd.Flags().StringVar(&s.before, "before", "", "up to this time, likewise")
	return s
}

func (s *span) add(q url.Values) error {
	for flag, text := range map[string]string{"since": s.since, "before": s.before} {
		if text == "" {
			continue
		}
		at, err := moment(flag, text)
		if err != nil {
			return err
		}
		q.Set(flag, at)
	}
	return nil
}

// filter adds the flags that are not empty to a query, and NAME=VALUE pairs of
// metadata.
func filter(q url.Values, values map[string]string, metadata []string) error {
	for name, value := range values {
		if value != "" {
			q.Set(name, value)
		}
	}
	found, err := pairs("metadata", metadata)
	for name, value := range found {
		q.Set("metadata."+name, value)
	}
	return err
}

func (a *cli) auditCommand() *cobra.Command {
	cmd, r := a.remoteGroup("audit", "Read, export and verify the audit trail",
		`The trail has one row for each call that ran code, or that Atoll rejected for a
limit, a policy or lack of capacity. Rows cannot be changed, or deleted before
they expire. A chain of hashes seals them, which shows any tampering.`,
		`  atoll audit list acme --since 24h --status cap_exceeded
  atoll audit export acme --since 2026-01-01 > acme.ndjson
  atoll audit verify acme`, adminKeyFile, map[string]completer{"TENANT": tenantNames})
	cmd.AddCommand(r.auditList(), r.auditExport(), r.auditVerify())
	return cmd
}

func (r *remote) auditList() *cobra.Command {
	var f struct {
		key, agent, turn, source, status, trace, code string
		metadata                                      []string
		limit                                         int
	}
	var s *span
	cmd := r.command("list TENANT", "List audit rows, newest first", `  atoll audit list acme --agent support-7 --since 1h
  atoll audit list acme --metadata order=4711 --json`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			q := url.Values{}
			if err := cmp.Or(s.add(q), filter(q, map[string]string{
				"key": f.key, "agent": f.agent, "session_id": f.turn, "source": f.source, "exit_status": f.status, "trace_id": f.trace, "executed_code_hash": f.code,
			}, f.metadata)); err != nil {
				return err
			}
			rows, err := c.Audit(args[0], q).All(ctx, f.limit)
			if err != nil {
				return err
			}
			return r.print(rows, func(w io.Writer) {
				row(w, "WHEN", "TRACE", "SOURCE", "AGENT", "TURN", "STATUS", "MS", "STDOUT", "STDERR", "REASON")
				for _, a := range rows {
					row(w, when(a.CreatedAt), a.TraceID, a.Source, a.AgentID, a.SessionID, a.ExitStatus, a.DurationMS, humanBytes(a.StdoutBytes), humanBytes(a.StderrBytes), a.FailureReason)
				}
			})
		})
	s = addSpan(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.key, "key", "", "of this key, by id or name")
	flags.StringVar(&f.agent, "agent", "", "of this agent")
	flags.StringVar(&f.turn, "turn", "", "of this turn")
	flags.StringVar(&f.source, "source", "", "the call: execute, execute_code, a tool such as shell, sandbox_create, …")
	flags.StringVar(&f.status, "status", "", choices(audit.ExitStatuses))
	flags.StringVar(&f.trace, "trace-id", "", "of this execution")
	flags.StringVar(&f.code, "code-sha256", "", "of code with this SHA-256")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "only executions with this metadata, NAME=VALUE; may be repeated")
	flags.IntVar(&f.limit, "limit", 100, "rows to list at most; 0 for all")
	return cmd
}

func (r *remote) auditExport() *cobra.Command {
	var s *span
	cmd := r.command("export TENANT", "Write audit rows to stdout as NDJSON, oldest first", "  atoll audit export acme --since 2026-01-01 > acme.ndjson", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			q := url.Values{}
			if err := s.add(q); err != nil {
				return err
			}
			return c.ExportAudit(ctx, args[0], q, r.app.std.out)
		})
	s = addSpan(cmd)
	return cmd
}

func (r *remote) auditVerify() *cobra.Command {
	var known, heads string
	cmd := r.command("verify [TENANT]", "Check the audit trail of a tenant, or of all", `  atoll audit verify --json > heads.json
  atoll audit verify --heads heads.json
  atoll audit verify acme --known 42:9f86d081…`, cobra.MaximumNArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			earlier, err := earlierHeads(args, known, heads)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				if args, err = trails(ctx, c); err != nil {
					return err
				}
			}
			reports := map[string]sdk.AuditReport{}
			for _, tenant := range args {
				report, err := c.VerifyAudit(ctx, tenant, sdk.AuditCheck{Known: earlier[tenant]})
				if err != nil {
					return fmt.Errorf("%s: %w", tenant, err)
				}
				reports[tenant] = report
			}
			for _, tenant := range slices.Sorted(maps.Keys(earlier)) {
				if _, ok := reports[tenant]; !ok && heads != "" {
					args = append(args, tenant)
					reports[tenant] = sdk.AuditReport{Problems: []sdk.AuditProblem{{Kind: string(audit.Known), Detail: "the tenant and its whole trail are gone"}}}
				}
			}
			return r.showReports(args, reports)
		})
	cmd.Long = cmd.Short + `.

Every row must match its seal or have expired, and every seal must continue from
the previous one. The database rules that protect the trail must be in force. Every
row must have a seal, and a time that fits its neighbors. Store the output of --json
elsewhere, and pass it as --heads next time, or one head as --known. The check then
also finds a trail that was truncated, rebuilt or deleted.

Exit code 1 when something is not as it should be.`
	cmd.Flags().StringVar(&known, "known", "", "head of an earlier report, NUMBER:HASH")
	cmd.Flags().StringVar(&heads, "heads", "", "file with what an earlier 'verify --json' of all tenants printed")
	cmd.MarkFlagsMutuallyExclusive("known", "heads")
	return cmd
}

// trails lists what a verification of all covers: tenants, by name, and ids of
// tenants that have a trail and are not on record.
func trails(ctx context.Context, c *sdk.Client) ([]string, error) {
	tenants, err := c.Tenants().All(ctx, 0)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, t := range tenants {
		out = append(out, t.Name)
	}
	found, err := c.AuditTrails().All(ctx, 0)
	for _, t := range found {
		if t.Tenant == nil {
			out = append(out, t.TenantID)
		}
	}
	return out, err
}

// earlierHeads reads the heads of earlier reports: one that is given for the
// tenant in args, or those in a file.
func earlierHeads(args []string, known, file string) (map[string]*sdk.AuditMark, error) {
	switch {
	case known != "":
		number, hash, _ := strings.Cut(known, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || len(args) == 0 {
			return nil, wrong("--known takes NUMBER:HASH, and needs the tenant")
		}
		return map[string]*sdk.AuditMark{args[0]: {Number: n, Hash: hash}}, nil
	case file == "":
		return nil, nil
	case len(args) > 0:
		return nil, wrong("--heads checks all tenants; for one tenant pass --known NUMBER:HASH")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var reports map[string]sdk.AuditReport
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, wrong("--heads: %s is not the output of 'atoll audit verify --json': %v", file, err)
	}
	out := map[string]*sdk.AuditMark{}
	for tenant, report := range reports {
		if report.Head != nil { // a trail without rows has none
			out[tenant] = report.Head
		}
	}
	return out, nil
}

// showReports fails when a trail is not whole.
func (r *remote) showReports(tenants []string, reports map[string]sdk.AuditReport) error {
	bad := 0
	err := r.print(reports, func(w io.Writer) {
		row(w, "TENANT", "TRAIL", "ROWS", "EXPIRED", "SEALS", "HEAD")
		for _, tenant := range tenants {
			p, head, verdict := reports[tenant], "", "whole"
			if p.Head != nil {
				head = fmt.Sprintf("%d:%s", p.Head.Number, p.Head.Hash)
			}
			if !p.OK {
				verdict = "NOT WHOLE"
			}
			row(w, tenant, verdict, p.Rows, p.Expired, p.Seals, head)
		}
	})
	for _, tenant := range tenants {
		for _, p := range reports[tenant].Problems {
			fmt.Fprintf(r.app.std.err, "%s: seal %d: %s: %s\n", tenant, p.Seal, p.Kind, p.Detail)
		}
		if !reports[tenant].OK {
			bad++
		}
	}
	if err == nil && bad > 0 {
		return fmt.Errorf("the audit trails of %d of %d tenants are incomplete or were changed", bad, len(tenants))
	}
	return err
}

func (a *cli) capsCommand() *cobra.Command {
	cmd, r := a.remoteGroup("caps", "Show and change the caps of execute_code",
		`The caps are circuit breakers: how many calls of execute_code a tenant may make
a UTC day, and one agent a UTC hour. They are in force from the next call on; 0
stops every call. 'atoll tenant set' gives a tenant caps of its own.`,
		`  atoll caps show
  atoll caps set --tenant-daily 5000
  atoll caps set --tenant-daily 0    stop execute_code`, adminKeyFile, map[string]completer{"TENANT": tenantNames})
	show := func(c sdk.Caps) error {
		return r.print(c, func(w io.Writer) {
			row(w, "tenant, a UTC day", c.TenantDaily)
			row(w, "agent, a UTC hour", c.AgentHourly)
		})
	}
	var daily, hourly int64
	var set *cobra.Command
	set = r.command("set", "Change the caps; omitted settings stay unchanged", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		var in sdk.CapsChange
		if set.Flags().Changed("tenant-daily") {
			in.TenantDaily = &daily
		}
		if set.Flags().Changed("agent-hourly") {
			in.AgentHourly = &hourly
		}
		if in == (sdk.CapsChange{}) {
			return errNothing
		}
		caps, err := c.ChangeCaps(ctx, in)
		if err != nil {
			return err
		}
		return show(caps)
	})
	set.Flags().Int64Var(&daily, "tenant-daily", 0, "calls of a tenant a UTC day; 0 stops every call")
	set.Flags().Int64Var(&hourly, "agent-hourly", 0, "calls of one agent a UTC hour; 0 stops every call")
	cmd.AddCommand(r.command("show", "Show the caps", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		caps, err := c.Caps(ctx)
		if err != nil {
			return err
		}
		return show(caps)
	}), set)
	return cmd
}

func (a *cli) usageCommand() *cobra.Command {
	cmd, r := a.remoteGroup("usage", "Show what tenants have used",
		`What was used, by day in UTC and interface, and the state of the monthly budget.`,
		`  atoll usage show acme
  atoll usage show acme --by agent
  atoll usage show acme --since 2026-01-01 --json`, adminKeyFile, map[string]completer{"TENANT": tenantNames})
	var s *span
	var by, agent, session string
	show := r.command("show TENANT", "Show what a tenant has used, this month if no other time is given", "", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			q := url.Values{}
			if err := cmp.Or(s.add(q), filter(q, map[string]string{"group_by": by, "agent": agent, "session_id": session}, nil)); err != nil {
				return err
			}
			u, err := c.Usage(ctx, args[0], q)
			if err != nil {
				return err
			}
			if by != "" {
				return r.print(u, func(w io.Writer) { showGroups(w, &u) })
			}
			return r.print(u, func(w io.Writer) { showUsage(w, &u) })
		})
	s = addSpan(show)
	show.Flags().StringVar(&by, "by", "", "agent or session: show the usage of each")
	show.Flags().StringVar(&agent, "agent", "", "with --by: only this agent")
	show.Flags().StringVar(&session, "session", "", "with --by: only this session")
	cmd.AddCommand(show)
	return cmd
}

// showGroups prints the usage of each agent or session.
func showGroups(w io.Writer, u *sdk.Usage) {
	row(w, "AGENT", "SESSION", "CALLS", "SECONDS", "CREDITS", "INPUT", "OUTPUT", "ESTIMATED", "COST USD")
	if u.Groups == nil {
		return
	}
	for _, g := range *u.Groups {
		row(w, g.AgentID, g.SessionID, g.Calls, fixed(g.Seconds), credits(g.Credits), g.InputTokens, g.OutputTokens, g.EstimatedTokens, money(g.Cost))
	}
}

func showUsage(w io.Writer, u *sdk.Usage) {
	amounts := func(day, source string, u *sdk.UsageAmounts) {
		row(w, day, source, u.Calls, u.Sessions, fixed(u.Seconds), fixed(u.CPUSeconds), fixed(u.GIBSeconds), humanBytes(u.BytesOut), credits(u.Credits))
	}
	var charged []sdk.UsageDay // for what responses cost
	row(w, "DAY", "SOURCE", "CALLS", "SESSIONS", "SECONDS", "CPU S", "GIB S", "OUTPUT", "CREDITS")
	for _, d := range u.Days {
		if slices.Contains([]string{"model", "tool", "sandbox_window"}, d.Source) {
			charged = append(charged, d)
			continue
		}
		amounts(d.Date, d.Source, &sdk.UsageAmounts{
			Calls: d.Calls, Sessions: d.Sessions, Seconds: d.Seconds, CPUSeconds: d.CPUSeconds, GIBSeconds: d.GIBSeconds, BytesOut: d.BytesOut, Credits: d.Credits,
		})
	}
	amounts("total", "", &u.Totals)
	if len(charged) > 0 {
		fmt.Fprintln(w)
		row(w, "DAY", "SOURCE", "NAME", "CALLS", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", "REASONING", "ESTIMATED", "COST USD")
		for _, d := range charged {
			row(w, d.Date, d.Source, d.Name, d.Calls, d.InputTokens, d.CacheReadTokens, d.CacheWriteTokens, d.OutputTokens, d.ReasoningTokens, d.EstimatedTokens, money(d.Cost))
		}
		t := &u.Totals
		row(w, "total", "", "", "", t.InputTokens, t.CacheReadTokens, t.CacheWriteTokens, t.OutputTokens, t.ReasoningTokens, t.EstimatedTokens, money(t.Cost))
	}
	budget, costs := "no budget", "no budget"
	if u.Month.Budget != nil {
		budget = "of " + credits(*u.Month.Budget)
	}
	if u.Month.CostBudget != nil {
		costs = "of $" + money(*u.Month.CostBudget)
	}
	limit := "no limit"
	if u.Outputs.Limit != nil {
		limit = "of " + bytesText(*u.Outputs.Limit)
	}
	fmt.Fprintf(w, "\nkept outputs: %s, %s\n", humanBytes(u.Outputs.Bytes), limit)
	fmt.Fprintf(w, "this month: %s credits, %s; $%s, %s; resets %s\n", credits(u.Month.Credits), budget, money(u.Month.Cost), costs, when(u.Month.ResetsAt))
}

func money(dollars float64) string { return strconv.FormatFloat(dollars, 'f', 6, 64) }
func fixed(n float64) string       { return strconv.FormatFloat(n, 'f', 2, 64) }
func credits(n float64) string     { return strconv.FormatFloat(n, 'f', 4, 64) }

func (a *cli) webhookCommand() *cobra.Command {
	cmd, r := a.remoteGroup("webhook", "Deliver webhooks again",
		`Atoll tries to deliver a webhook four times. You can deliver a failed or lost
webhook again.`,
		`  atoll webhook redeliver acme trc_sqcxkwvsuzxzwr7l2pwm`, adminKeyFile, map[string]completer{"TENANT": tenantNames})
	cmd.AddCommand(r.command("redeliver TENANT TRACE_ID", "Deliver the webhook of an ended execution again", "", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			d, err := c.Redeliver(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return r.print(d, func(w io.Writer) { row(w, d.TraceID, d.WebhookDeliveryStatus) })
		}))
	return cmd
}
