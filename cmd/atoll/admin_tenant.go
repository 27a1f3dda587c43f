package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// tenantFlags are what can be set of a tenant.
type tenantFlags struct {
	cmd                 *cobra.Command
	plan, tier          string
	sandbox, disabled   bool
	network, root       bool
	keyIsolation        bool
	budget              float64
	costBudget          float64
	redactionOff        []string
	auditDays           int64
	dailyCap, hourlyCap string
	auditText           bool
}

func addTenantFlags(cmd *cobra.Command) *tenantFlags {
	f := &tenantFlags{cmd: cmd}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.plan, "plan", "", "plan (free)")
	flags.StringVar(&f.tier, "tier", "", "standard or regulated, which turns the sandbox off (standard)")
	flags.BoolVar(&f.sandbox, "sandbox", true, "whether its agents may use execute_code")
	flags.BoolVar(&f.network, "network", false, "whether its environments may have a network")
	flags.BoolVar(&f.root, "root", false, "whether its environments may run programs as root in their sandbox")
	flags.BoolVar(&f.keyIsolation, "key-isolation", false, "whether its environments may have executions of one key share a kernel")
	flags.Float64Var(&f.budget, "budget", 0, "credits of a calendar month; 0 for no limit")
	flags.Float64Var(&f.costBudget, "budget-usd", 0, "US dollars that responses may cost in a calendar month; 0 for no limit")
	flags.Int64Var(&f.auditDays, "audit-days", 0, "days to keep audit rows, 1 to 180 (30)")
	flags.BoolVar(&f.auditText, "audit-text", false, "whether 'atoll activity' also shows the beginning of code and commands, redacted, besides their hashes")
	flags.StringSliceVar(&f.redactionOff, "redaction-off", nil, "redaction rules that do not apply; replaces the list")
	flags.StringVar(&f.dailyCap, "daily-cap", "", "calls of execute_code per UTC day, 0 for none, or server for the server's cap")
	flags.StringVar(&f.hourlyCap, "hourly-cap", "", "calls of one agent per UTC hour, 0 for none, or server for the server's cap")
	return f
}

// change is what the flags on the command line say; now are the caps that are
// in force.
func (f *tenantFlags) change(now sdk.CapOverrides) (sdk.TenantChange, error) {
	c := sdk.TenantChange{
		Plan: ifGiven(f.cmd, "plan", &f.plan), Tier: ifGiven(f.cmd, "tier", &f.tier), SandboxEnabled: ifGiven(f.cmd, "sandbox", &f.sandbox),
		MonthlyCredits: ifGiven(f.cmd, "budget", &f.budget), MonthlyCost: ifGiven(f.cmd, "budget-usd", &f.costBudget), AuditDays: ifGiven(f.cmd, "audit-days", &f.auditDays), AuditText: ifGiven(f.cmd, "audit-text", &f.auditText),
		RedactionOff: ifGiven(f.cmd, "redaction-off", &f.redactionOff), Disabled: ifGiven(f.cmd, "disabled", &f.disabled),
		NetworkEnabled: ifGiven(f.cmd, "network", &f.network), RootEnabled: ifGiven(f.cmd, "root", &f.root),
		KeyIsolationEnabled: ifGiven(f.cmd, "key-isolation", &f.keyIsolation),
	}
	for name, cap := range map[string]struct {
		text  string
		field **int64
	}{"daily-cap": {f.dailyCap, &now.TenantDaily}, "hourly-cap": {f.hourlyCap, &now.AgentHourly}} {
		if !f.cmd.Flags().Changed(name) {
			continue
		}
		c.Caps = &now
		if *cap.field = nil; cap.text == "server" {
			continue
		}
		n, err := strconv.ParseInt(cap.text, 10, 64)
		if err != nil {
			return c, wrong("--%s %s: want a number, or server", name, cap.text)
		}
		*cap.field = &n
	}
	return c, nil
}

func (a *cli) tenantCommand() *cobra.Command {
	cmd, r := a.remoteGroup("tenant", "Create, show and change tenants",
		`A tenant owns environments, keys, templates and everything that is made with
them. Its plan limits its usage; its policy says whether its agents may run code.`,
		`  atoll tenant create acme --plan pro --budget 5000
  atoll tenant list
  atoll tenant set acme --tier regulated
  atoll tenant events acme`, adminKeyFile, map[string]completer{"NAME": tenantNames})

	var make *tenantFlags
	var environment string
	create := r.command("create NAME", "Create a tenant with an environment", `  atoll tenant create acme --plan pro --audit-days 90
  atoll tenant create acme --env reports`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			change, err := make.change(sdk.CapOverrides{})
			if err != nil {
				return err
			}
			in := sdk.NewTenant{
				Name: args[0], Plan: change.Plan, Tier: change.Tier, SandboxEnabled: change.SandboxEnabled, MonthlyCredits: change.MonthlyCredits, MonthlyCost: change.MonthlyCost, AuditDays: change.AuditDays, AuditText: change.AuditText,
				RedactionOff: change.RedactionOff, Disabled: change.Disabled, NetworkEnabled: change.NetworkEnabled, RootEnabled: change.RootEnabled, KeyIsolationEnabled: change.KeyIsolationEnabled, Caps: change.Caps,
			}
			if environment != "" {
				in.Environment = &environment
			}
			t, err := c.CreateTenant(ctx, in)
			if err != nil {
				return err
			}
			if err := r.showTenant(t); err != nil || r.json {
				return err
			}
			server, err := r.find()
			if err != nil {
				return err
			}
			return nextAfterTenant(a.std.err, server.url, t)
		})
	make = addTenantFlags(create)
	create.Flags().StringVar(&environment, "env", tenant.DefaultName, "name of its first environment; empty for none")

	var change *tenantFlags
	set := r.command("set NAME", "Change a tenant; omitted settings stay unchanged", `  atoll tenant set acme --plan enterprise --budget 0
  atoll tenant set acme --sandbox=false
  atoll tenant set acme --daily-cap 200 --hourly-cap server
  atoll tenant set acme --disabled`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			now, err := c.Tenant(ctx, args[0])
			if err != nil {
				return err
			}
			in, err := change.change(now.Caps)
			if err != nil {
				return err
			}
			if in == (sdk.TenantChange{}) {
				return errNothing
			}
			t, err := c.ChangeTenant(ctx, args[0], in)
			if err != nil {
				return err
			}
			return r.showTenant(t)
		})
	change = addTenantFlags(set)
	set.Flags().BoolVar(&change.disabled, "disabled", false, "whether to reject its keys")

	cmd.AddCommand(create,
		r.command("list", "List tenants", "", cobra.NoArgs, shows(
			func(ctx context.Context, c *sdk.Client, _ []string) ([]sdk.Tenant, error) {
				return c.Tenants().All(ctx, 0)
			},
			listing(&r.printer, []any{"NAME", "ID", "PLAN", "TIER", "SANDBOX", "BUDGET", "STATE", "CREATED"}, func(t sdk.Tenant) []any {
				return []any{t.Name, t.ID, t.Plan, t.Tier, onOff(t.SandboxEnabled), budget(t.MonthlyCredits), state(t), when(t.CreatedAt)}
			}))),
		r.command("show NAME", "Show a tenant", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Tenant), r.showTenant)),
		set,
		a.deleteTenant(r),
		r.command("events NAME", "List the changes to a tenant's policy", "", cobra.ExactArgs(1), shows(allOf((*sdk.Client).PolicyEvents),
			listing(&r.printer, []any{"WHEN", "BY", "FIELD", "FROM", "TO"}, func(e sdk.PolicyEvent) []any {
				return []any{when(e.CreatedAt), e.Actor, e.Field, e.Old, e.New}
			}))))
	return cmd
}

func (r *remote) showTenant(t sdk.Tenant) error {
	return r.print(t, func(w io.Writer) {
		row(w, "name", t.Name)
		row(w, "id", t.ID)
		row(w, "state", state(t))
		row(w, "plan", t.Plan)
		row(w, "tier", t.Tier)
		row(w, "sandbox", onOff(t.SandboxEnabled))
		row(w, "network", onOff(t.NetworkEnabled))
		row(w, "root", onOff(t.RootEnabled))
		row(w, "key isolation", onOff(t.KeyIsolationEnabled))
		row(w, "budget", budget(t.MonthlyCredits))
		row(w, "budget in USD", budget(t.MonthlyCost))
		row(w, "caps", "daily "+capText(t.Caps.TenantDaily)+", hourly "+capText(t.Caps.AgentHourly))
		row(w, "audit rows kept", strconv.FormatInt(t.AuditDays, 10)+" days")
		row(w, "texts in the activity", onOff(t.AuditText))
		row(w, "redaction off", strings.Join(t.RedactionOff, ", "))
		row(w, "created", when(t.CreatedAt))
		if t.Environment != nil {
			row(w, "environment", t.Environment.Name)
		}
	})
}

// nextAfterTenant prints the commands that run a first program for a new tenant.
func nextAfterTenant(w io.Writer, server string, t sdk.Tenant) error {
	environment := "ENV"
	next := "Next, create a key and run a program with it:\n"
	if t.Environment == nil {
		next = "Next, create an environment and a key, and run a program with it:\n  atoll env create " + t.Name + " ENV\n"
	} else {
		environment = t.Environment.Name
	}
	_, err := fmt.Fprintf(w, "\n%[1]s  atoll key create %[2]s first --env %[3]s --out %[2]s.key\n  atoll run hello.py --base-url %[4]s --key-file %[2]s.key\n", next, t.Name, environment, server)
	return err
}

func state(t sdk.Tenant) string {
	if t.DeletedAt != nil {
		return "being deleted since " + when(*t.DeletedAt)
	}
	if t.DisabledAt != nil {
		return "disabled " + when(*t.DisabledAt)
	}
	return "active"
}

func budget(credits float64) string {
	if credits == 0 {
		return "none"
	}
	return strconv.FormatFloat(credits, 'f', -1, 64)
}

func capText(n *int64) string {
	if n == nil {
		return "default"
	}
	return strconv.FormatInt(*n, 10)
}
