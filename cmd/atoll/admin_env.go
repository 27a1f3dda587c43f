package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// envFlags are what can be set of an environment.
type envFlags struct {
	app                          *cli
	cmd                          *cobra.Command
	name, image                  string
	cpu                          float64
	processes, openFiles, inodes int64
	memory, root, tmp, shm       string
	vars                         *varFlags
	profile, permissions         string
	network                      networkFlags
	asRoot                       bool
	isolation                    string
	apt, pip, npm                []string
}

func (a *cli) addEnvFlags(cmd *cobra.Command) *envFlags {
	f := &envFlags{app: a, cmd: cmd}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.image, "image", "", "image, a name from 'atoll image list' (default)")
	flags.Float64Var(&f.cpu, "cpu", 0, "cores")
	flags.StringVar(&f.memory, "memory", "", "memory, such as 1GiB; the next three live in it")
	flags.StringVar(&f.root, "root-size", "", "size of the writable layer over the image")
	flags.StringVar(&f.tmp, "tmp-size", "", "size of /tmp")
	flags.StringVar(&f.shm, "shm-size", "", "size of /dev/shm")
	flags.Int64Var(&f.processes, "processes", 0, "processes and threads")
	flags.Int64Var(&f.openFiles, "open-files", 0, "open files of one process")
	flags.Int64Var(&f.inodes, "inodes", 0, "files in each of root, /tmp and /dev/shm")
	flags.StringVar(&f.profile, "profile", "", "rules to begin with: "+choices(tenant.Profiles))
	flags.StringVar(&f.permissions, "permissions", "", "file with rules as JSON, as in docs/reference/permissions.md, - for stdin")
	flags.StringArrayVar(&f.apt, "apt", nil, "Debian package to install in the image; replaces the current list; repeatable, '' for none")
	flags.StringArrayVar(&f.pip, "pip", nil, "Python package, likewise, such as six==1.17.0")
	flags.StringArrayVar(&f.npm, "npm", nil, "npm package, likewise, such as left-pad@1.3.0")
	f.network.addFlags(flags)
	flags.BoolVar(&f.asRoot, "root", false, "run programs as root in their sandbox, for apt and similar programs")
	flags.StringVar(&f.isolation, "isolation", "", "run: a kernel for each execution; key: executions of a key share one (run)")
	cmd.MarkFlagsMutuallyExclusive("permissions", "root")
	cmd.MarkFlagsMutuallyExclusive("permissions", "allow")
	cmd.MarkFlagsMutuallyExclusive("permissions", "deny")
	f.vars = a.addVarFlags(cmd)
	return f
}

// change is what the flags on the command line say.
func (f *envFlags) change() (sdk.EnvironmentChange, error) {
	c := sdk.EnvironmentChange{Name: ifGiven(f.cmd, "name", &f.name), Image: ifGiven(f.cmd, "image", &f.image)}
	l := sdk.LimitsChange{
		CPU: ifGiven(f.cmd, "cpu", &f.cpu), Processes: ifGiven(f.cmd, "processes", &f.processes),
		OpenFiles: ifGiven(f.cmd, "open-files", &f.openFiles), Inodes: ifGiven(f.cmd, "inodes", &f.inodes),
	}
	for flag, to := range map[string]struct {
		text  string
		field **int64
	}{"memory": {f.memory, &l.Memory}, "root-size": {f.root, &l.RootSize}, "tmp-size": {f.tmp, &l.TmpSize}, "shm-size": {f.shm, &l.ShmSize}} {
		if f.cmd.Flags().Changed(flag) {
			n, err := size(flag, to.text)
			if err != nil {
				return c, err
			}
			*to.field = &n
		}
	}
	if l != (sdk.LimitsChange{}) {
		c.Limits = &l
	}
	var err error
	if c.EnvVars, c.Secrets, c.Unset, err = f.vars.change(); err != nil {
		return c, err
	}
	if c.SecretHosts, err = f.vars.hosts(); err != nil {
		return c, err
	}
	c.Packages = f.packages()
	c.Isolation = ifGiven(f.cmd, "isolation", &f.isolation)
	c.PermissionProfile = ifGiven(f.cmd, "profile", &f.profile)
	if c.Permissions, err = f.rules(); err != nil {
		return c, err
	}
	if root := ifGiven(f.cmd, "root", &f.asRoot); root != nil {
		c.Permissions = &sdk.PermissionsChange{Process: &sdk.ProcessChange{Root: root}}
	}
	return c, nil
}

// packages are those of the flags; nil for none.
func (f *envFlags) packages() *sdk.PackagesChange {
	given := func(flag string, list []string) *[]string {
		if !f.cmd.Flags().Changed(flag) {
			return nil
		}
		list = slices.DeleteFunc(append([]string{}, list...), func(text string) bool { return text == "" })
		return &list
	}
	c := sdk.PackagesChange{Apt: given("apt", f.apt), Pip: given("pip", f.pip), Npm: given("npm", f.npm)}
	if c == (sdk.PackagesChange{}) {
		return nil
	}
	return &c
}

// rules reads permissions from a file.
func (f *envFlags) rules() (*sdk.PermissionsChange, error) {
	if f.permissions == "" {
		return nil, nil
	}
	text, err := f.app.readSmall(f.permissions)
	if err != nil {
		return nil, fmt.Errorf("--permissions: %w", err)
	}
	var p sdk.PermissionsChange
	if err := json.Unmarshal([]byte(text), &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, wrong("--permissions %s: %w", f.permissions, err)
	}
	return &p, nil
}

func size(flag, text string) (int64, error) {
	var s config.Size
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return 0, wrong("--%s: %w", flag, err)
	}
	return int64(s), nil
}

func (a *cli) envCommand() *cobra.Command {
	cmd, r := a.remoteGroup("env", "Create, show and change environments",
		`An environment configures the executions of its keys: image, limits, variables and
secrets. Atoll stores secrets encrypted, redacts them in output and never shows
them again.`,
		`  atoll env create acme reports --cpu 2 --memory 2GiB --var LANG=C.UTF-8
  atoll env set acme reports --secret-file DB_PASSWORD=./password
  atoll env list acme`, adminKeyFile, map[string]completer{"TENANT": tenantNames, "NAME": envNames})

	var make *envFlags
	create := r.command("create TENANT NAME", "Create an environment", "  atoll env create acme reports --image tools --memory 1GiB", cobra.ExactArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			in, err := make.change()
			if err != nil {
				return err
			}
			in.Name = &args[1]
			network, err := openNetwork(make, sdk.NetworkPermissions{}, &in)
			if err != nil {
				return err
			}
			conclude, err := r.allowTenant(ctx, c, args[0], network, make.asRoot)
			if err != nil {
				return err
			}
			e, err := c.CreateEnvironment(ctx, args[0], in)
			if err := conclude(err); err != nil {
				return err
			}
			return r.showEnv(e)
		})
	make = a.addEnvFlags(create)

	var change *envFlags
	set := r.command("set TENANT [NAME]", "Change an environment; omitted settings stay unchanged", `  atoll env set dev --allow pypi
  atoll env set dev --allow debian --root
  atoll env set acme reports --memory 4GiB
  API_TOKEN=… atoll env set acme reports --secret-env API_TOKEN --unset OLD_TOKEN
  atoll env set acme reports --bind API_TOKEN=api.example.com
  atoll env set acme reports --pip pypdf==6.4.0 --apt jq`, cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			in, err := change.change()
			if err != nil {
				return err
			}
			name := tenant.DefaultName
			if len(args) == 2 {
				name = args[1]
			}
			opened, network := change.network.given(), false
			var before sdk.Environment
			if opened {
				if before, err = c.Environment(ctx, args[0], name); err != nil {
					return err
				}
				if network, err = openNetwork(change, before.Permissions.Network, &in); err != nil {
					return err
				}
			}
			if reflect.ValueOf(in).IsZero() {
				return errNothing
			}
			conclude, err := r.allowTenant(ctx, c, args[0], network, change.asRoot)
			if err != nil {
				return err
			}
			e, err := c.ChangeEnvironment(ctx, args[0], name, in)
			if err := conclude(err); err != nil {
				return err
			}
			if opened {
				r.openSandboxes(ctx, change, args[0], &e, before.Permissions.Network)
			}
			return r.showEnv(e)
		})
	set.Long = set.Short + `. Without NAME it is the environment
default.

--allow opens the network for the next run, and for the sandboxes of the tenant
dev that have a network and the environment's policy. Other sandboxes get it when
'atoll sandbox restart' restarts them; the command prints their number. It also
allows the tenant to have a network.

--root runs programs as root of their sandbox, in runs and in sandboxes that are
made from then on, and allows the tenant to do so.`
	change = a.addEnvFlags(set)
	set.MarkFlagsMutuallyExclusive("profile", "allow")
	set.MarkFlagsMutuallyExclusive("profile", "deny")
	set.Flags().StringVar(&change.name, "name", "", "new name")
	change.vars.addUnset(set)

	cmd.AddCommand(create,
		r.command("list TENANT", "List a tenant's environments", "", cobra.ExactArgs(1), shows(allOf((*sdk.Client).Environments),
			listing(&r.printer, []any{"NAME", "ID", "IMAGE", "CPU", "MEMORY", "VARIABLES", "SECRETS", "CREATED"}, func(e sdk.Environment) []any {
				return []any{e.Name, e.ID, e.Image, e.Limits.CPU, bytesText(e.Limits.Memory), len(e.EnvVars), len(e.Secrets), when(e.CreatedAt)}
			}))),
		r.command("show TENANT NAME", "Show an environment", "", cobra.ExactArgs(2), shows(two((*sdk.Client).Environment), r.showEnv)),
		set,
		r.deletion("TENANT", "NAME", "Delete environments that no living key is bound to", "", func(ctx context.Context, c *sdk.Client, lead []string, name string) error {
			return c.DeleteEnvironment(ctx, lead[0], name)
		}))
	return cmd
}

// bytesText renders a limit: exactly where a unit divides it, otherwise rounded.
func bytesText(n int64) string {
	if text := config.Size(n).String(); n < 1<<10 || n%(1<<10) == 0 {
		return text
	}
	return humanBytes(n)
}

// humanBytes renders a measured size, rounded, such as 1.2 MiB.
func humanBytes(n int64) string { return humanize.IBytes(uint64(max(0, n))) }

func (r *remote) showEnv(e sdk.Environment) error {
	return r.print(e, func(w io.Writer) {
		row(w, "name", e.Name)
		row(w, "id", e.ID)
		row(w, "image", e.Image)
		l := e.Limits
		row(w, "cpu", l.CPU)
		row(w, "memory", bytesText(l.Memory))
		row(w, "root, tmp, shm", bytesText(l.RootSize)+", "+bytesText(l.TmpSize)+", "+bytesText(l.ShmSize))
		row(w, "processes", l.Processes)
		row(w, "open files", l.OpenFiles)
		row(w, "inodes", humanize.Comma(l.Inodes))
		row(w, "isolation", e.Isolation)
		showPermissions(w, e.Permissions)
		for _, of := range []struct {
			name string
			list []string
		}{{"apt", e.Packages.Apt}, {"pip", e.Packages.Pip}, {"npm", e.Packages.Npm}} {
			if len(of.list) > 0 {
				row(w, of.name, strings.Join(of.list, " "))
			}
		}
		if b := e.PackageBuild; b != nil {
			row(w, "image build", b.State)
			if b.State != "ready" {
				for _, line := range b.Log {
					row(w, "", line)
				}
			}
		}
		showVars(w, e.EnvVars, e.Secrets, e.SecretHosts)
		row(w, "created", when(e.CreatedAt))
	})
}

func showPermissions(w io.Writer, p sdk.Permissions) {
	showNetwork(w, p.Network)
	row(w, "writable", strings.Join(p.Filesystem.WritablePaths, ", "))
	row(w, "read-only", strings.Join(p.Filesystem.ReadOnlyPaths, ", "))
	row(w, "blocked", strings.Join(p.Filesystem.BlockedPaths, ", "))
	row(w, "root", onOff(p.Process.Root))
	row(w, "exec", onOff(p.Process.AllowExec))
	for _, command := range p.Process.BlockedCommands {
		row(w, "blocked command", command)
	}
	if p.Process.MaxProcesses > 0 {
		row(w, "max processes", p.Process.MaxProcesses)
	}
}
