package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app/tty"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// sandboxes are the commands about named sandboxes.
type sandboxes struct {
	*remote
	session string
}

func (a *cli) sandboxCommand() *cobra.Command {
	cmd, r := a.remoteGroup("sandbox", "Create, use and delete named sandboxes",
		`A named sandbox lives until it is deleted, with its files and processes. Its name
is unique in its session (--session); its id can be given instead.`,
		`  atoll sandbox create builder --image node:22
  atoll sandbox exec -it builder -- bash
  atoll sandbox cp ./src builder:src
  atoll sandbox ps --all
  atoll sandbox delete builder`, devKeyFile, nil)
	cmd.SuggestFor = []string{"ls", "cp", "rm", "kill", "logs", "shell"} // as docker and kubectl have them
	s := newSandboxes(r, cmd)
	cmd.AddCommand(
		s.create(), s.list(), s.show(), s.exec(), s.shell(), s.cp(), s.logs(), s.processes(), s.kill(), s.ports(), s.preview(), s.network(),
		s.sleep(), s.wake(), s.restart(), s.fork(), s.snapshot(), s.delete())
	return cmd
}

// newSandboxes adds the flags that commands about sandboxes share.
func newSandboxes(r *remote, cmd *cobra.Command) *sandboxes {
	s := &sandboxes{remote: r}
	cmd.PersistentFlags().StringVar(&s.session, "session", "default", "the session that the sandbox belongs to")
	r.words = map[string]completer{"NAME": s.sandboxNames, "PROCESS": s.processNames}
	return s
}

// sandboxShortcuts are 'atoll exec' and 'atoll ps', as docker has them.
func (a *cli) sandboxShortcuts() []*cobra.Command {
	shortcut := func(name string, build func(*sandboxes) *cobra.Command) *cobra.Command {
		s := &sandboxes{remote: &remote{target: target{app: a, local: devKeyFile}, printer: printer{out: a.std.out}}, session: "default"}
		s.words = map[string]completer{"NAME": s.sandboxNames}
		cmd := build(s)
		_, arguments, _ := strings.Cut(cmd.Use, " ")
		cmd.Use = strings.TrimSpace(name + " " + arguments)
		cmd.Aliases = nil
		cmd.Example = strings.ReplaceAll(strings.ReplaceAll(cmd.Example, "atoll sandbox exec", "atoll exec"), "atoll sandbox list", "atoll ps")
		cmd.Short += " (short for 'atoll sandbox " + name + "')"
		s.target.addFlags(cmd.Flags())
		s.printer.addFlags(cmd.Flags())
		cmd.Flags().StringVar(&s.session, "session", "default", "the session that the sandbox belongs to")
		return cmd
	}
	return []*cobra.Command{shortcut("exec", (*sandboxes).exec), shortcut("ps", (*sandboxes).list)}
}

func (s *sandboxes) at(name string) sdk.SandboxRef {
	return sdk.SandboxRef{Session: s.session, Name: name}
}

func (s *sandboxes) sandboxNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Sandboxes(ctx, s.session)
	return namesOf(all, err, func(sb sdk.Sandbox) string { return sb.Name })
}

func (s *sandboxes) processNames(ctx context.Context, c *sdk.Client, args []string) ([]string, error) {
	all, err := c.Processes(ctx, s.at(args[0]))
	return namesOf(all, err, func(p sdk.SandboxProcess) string { return p.ProcessID })
}

func (s *sandboxes) create() *cobra.Command {
	var image, snapshot string
	var filesOnly bool
	var subPaths []string
	var sleepAfter, timeout time.Duration
	env := programEnv{app: s.app}
	var limits sandboxSize
	cmd := s.command("create NAME", "Create a sandbox if it does not exist", `  atoll sandbox create builder --image node:22 --sleep-after 10m
  atoll sandbox create small --cpu 0.5 --memory 256MiB --disk 1GiB
  atoll sandbox create again --snapshot snap-0123456789abcdef`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			vars, err := env.values()
			if err != nil {
				return err
			}
			in := sdk.NewSandbox{
				Name: args[0], Session: &s.session, EnvVars: vars, SleepAfterMS: milliseconds(sleepAfter), TimeoutMS: milliseconds(timeout),
			}
			if err := limits.apply(&in); err != nil {
				return err
			}
			if image != "" {
				in.Image = &image
			}
			if snapshot != "" {
				in.Snapshot = &snapshot
			}
			if filesOnly {
				in.FilesOnly = &filesOnly
			}
			if len(subPaths) > 0 {
				in.SubPaths = &subPaths
			}
			sb, err := c.CreateSandbox(ctx, in)
			if err != nil {
				return err
			}
			return s.showOne(sb)
		})
	flags := cmd.Flags()
	flags.StringVar(&image, "image", "", "image, such as node:22 (the image of the key's environment)")
	flags.StringVar(&snapshot, "snapshot", "", "snapshot to start from, including its processes (none)")
	flags.BoolVar(&filesOnly, "files-only", false, "restore only the snapshot's files")
	env.addFlags(flags)
	limits.addFlags(flags)
	flags.StringArrayVar(&subPaths, "sub-path", nil, "part of a connection to mount, /data/SLUG/PATH; may be repeated (everything that the key may mount)")
	flags.DurationVar(&sleepAfter, "sleep-after", 0, "idle time after which it sleeps (the server's)")
	flags.DurationVar(&timeout, "timeout", 0, "lifetime, after which Atoll deletes it (the longest that the plan allows)")
	return cmd
}

// milliseconds is a time as the API has it; none for 0.
func milliseconds(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func (s *sandboxes) list() *cobra.Command {
	var all, orphans, reap bool
	cmd := s.command("list", "List sandboxes", `  atoll sandbox list --all
  atoll sandbox list --orphans        what is left of sandboxes that no record knows; needs an admin key`, cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			switch {
			case orphans, reap:
				return s.orphans(ctx, reap)
			case all:
				s.session = ""
			}
			list, err := c.Sandboxes(ctx, s.session)
			if err != nil {
				return err
			}
			defer s.warnImages(list)
			return s.showAll(list)
		})
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list the sandboxes of all sessions")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "list data of sandboxes that are not in the database")
	cmd.Flags().BoolVar(&reap, "reap", false, "delete the orphans, and list them")
	cmd.Aliases = append(cmd.Aliases, "ps")
	cmd.Flags().Lookup("quiet").Usage = "print only ids, one per line"
	return cmd
}

func (s *sandboxes) show() *cobra.Command {
	return s.command("show NAME", "Show a sandbox without waking it", "", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) (sdk.Sandbox, error) {
			return c.Sandbox(ctx, s.at(args[0]))
		}, s.showOne))
}

func (s *sandboxes) sleep() *cobra.Command {
	cmd := s.command("sleep NAME", "Put a sandbox to sleep; the next call wakes it with its processes", "", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) (sdk.Sandbox, error) {
			return c.SleepSandbox(ctx, s.at(args[0]))
		}, s.showOne))
	return cmd
}

func (s *sandboxes) wake() *cobra.Command {
	cmd := s.command("wake NAME", "Wake a sleeping sandbox; any call does this too", "", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) (sb sdk.Sandbox, err error) {
			if _, err = c.Processes(ctx, s.at(args[0])); err != nil { // a use that changes nothing
				return sb, err
			}
			return c.Sandbox(ctx, s.at(args[0]))
		}, s.showOne))
	return cmd
}

func (s *sandboxes) restart() *cobra.Command {
	cmd := s.command("restart NAME", "Restart a sandbox with its environment's current settings", "  atoll sandbox restart builder", cobra.ExactArgs(1), shows(
		func(ctx context.Context, c *sdk.Client, args []string) (sdk.Sandbox, error) {
			return c.RestartSandbox(ctx, s.at(args[0]))
		}, s.showOne))
	cmd.Long = `Restart a sandbox with the current image, limits, permissions and network of its
environment. Atoll looks up an image alias again. The sandbox keeps its name, its id
and its files in /home/user, /tmp and /var/tmp. Its processes end.`
	return cmd
}

func (s *sandboxes) fork() *cobra.Command {
	var count int
	cmd := s.command("fork NAME", "Copy a sandbox with its processes", "  atoll sandbox fork builder --count 5", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			forks, err := c.ForkSandbox(ctx, s.at(args[0]), count)
			if err != nil {
				return err
			}
			return s.showAll(forks)
		})
	cmd.Flags().IntVar(&count, "count", 1, "number of copies")
	return cmd
}

func (s *sandboxes) delete() *cobra.Command {
	var all, force bool
	cmd := s.command("delete NAME…", "Delete sandboxes and their files", `  atoll sandbox delete builder
  atoll sandbox delete --all --session notes`, cobra.ArbitraryArgs,
		func(ctx context.Context, c *sdk.Client, args []string) error {
			switch {
			case all == (len(args) > 0):
				return wrong("name the sandboxes, or pass --all for all sandboxes of the session")
			case all:
				list, err := c.Sandboxes(ctx, s.session)
				if err != nil {
					return err
				}
				for _, sb := range list {
					args = append(args, sb.Name)
				}
			}
			return s.deletes(args, force, func(name string) error { return c.DeleteSandbox(ctx, s.at(name)) })
		})
	addForce(cmd, &force)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "delete all sandboxes of the session")
	return cmd
}

func (s *sandboxes) showOne(sb sdk.Sandbox) error {
	return s.print(sb, func(w io.Writer) {
		row(w, "sandbox", sb.SandboxID)
		row(w, "name", sb.Name)
		row(w, "session", sb.Session)
		row(w, "image", imageOf(sb))
		row(w, "warning", sb.ImageWarning)
		row(w, "status", statusOf(sb))
		row(w, "detail", sb.Detail)
		row(w, "cpu", fmt.Sprintf("%g", sb.Limits.CPU))
		row(w, "memory", bytesText(sb.Limits.Memory))
		row(w, "disk", memoryBound(sb.DiskSize))
		row(w, "network", networkText(sb.Network))
		row(w, "mounts", strings.Join(sb.Mounts, ", "))
		row(w, "created", when(sb.CreatedAt))
		row(w, "used", when(sb.UsedAt))
		row(w, "expires", whenOr(sb.ExpiresAt, "-"))
		if sb.UnusedUntil != nil {
			row(w, "if unused", "destroyed at "+when(*sb.UnusedUntil))
		}
	})
}

func (s *sandboxes) showAll(list []sdk.Sandbox) error {
	return listing(&s.printer, []any{"NAME", "SESSION", "ID", "IMAGE", "CPU", "MEMORY", "DISK", "STATUS", "USED", "EXPIRES"}, func(sb sdk.Sandbox) []any {
		if s.quiet {
			return []any{sb.SandboxID} // a name is unique in its session alone
		}
		return []any{sb.Name, sb.Session, sb.SandboxID, imageOf(sb), sb.Limits.CPU, bytesText(sb.Limits.Memory), memoryBound(sb.DiskSize), statusOf(sb), when(sb.UsedAt), whenOr(endOf(sb), "-")}
	})(list)
}

// warnImages warns on stderr about sandboxes that run another image version than requested.
func (s *sandboxes) warnImages(list []sdk.Sandbox) {
	for _, sb := range list {
		if sb.ImageWarning != "" {
			fmt.Fprintf(s.app.std.err, "atoll: sandbox %s: %s\n", sb.Name, tty.Printable(sb.ImageWarning))
		}
	}
}

// imageOf is the image that a sandbox runs, and what it was asked for as.
func imageOf(sb sdk.Sandbox) string {
	if sb.ImageAlias == "" || sb.ImageAlias == sb.Image {
		return sb.Image
	}
	return sb.Image + " (" + sb.ImageAlias + ")"
}

// endOf is when a sandbox is destroyed if it is not used before: the earlier one of its time
// and of keep_sandboxes.
func endOf(sb sdk.Sandbox) *time.Time {
	if sb.ExpiresAt == nil || sb.UnusedUntil != nil && sb.UnusedUntil.Before(*sb.ExpiresAt) {
		return sb.UnusedUntil
	}
	return sb.ExpiresAt
}

// statusOf is a status, and how one that sleeps is kept.
func statusOf(sb sdk.Sandbox) string {
	if sb.Kept == "" {
		return sb.Status
	}
	return sb.Status + " (" + sb.Kept + ")"
}

// orphans are for the operator: the key is the admin's.
func (s *sandboxes) orphans(ctx context.Context, reap bool) error {
	operator := s.target
	operator.local = adminKeyFile
	e, err := operator.find()
	if err != nil {
		return err
	}
	c := sdk.New(e.url, e.key)
	find := c.Orphans
	if reap {
		find = c.Reap
	}
	ids, err := find(ctx)
	if err != nil {
		return err
	}
	return listing(&s.printer, []any{"ID"}, func(id string) []any { return []any{id} })(ids)
}
