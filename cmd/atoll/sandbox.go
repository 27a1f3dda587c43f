package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// sandboxes are the commands about named sandboxes.
type sandboxes struct {
	*remote
	session string
}

func (a *cli) sandboxCommand() *cobra.Command {
	cmd, r := a.remoteGroup("sandbox", "Make, use and end named sandboxes",
		`A named sandbox lives until it is removed, with its files and processes. Its name
is unique in its session (--session); its id can be given instead.`,
		`  atoll sandbox create builder --image node:22
  atoll sandbox exec builder -- npm --version
  atoll sandbox shell builder
  atoll sandbox cp ./src builder:src`, devKeyFile)
	s := &sandboxes{remote: r}
	cmd.PersistentFlags().StringVar(&s.session, "session", "default", "the session that the sandbox belongs to")
	cmd.AddCommand(s.create(), s.list(), s.fork(), s.snapshot(), s.exec(), s.shell(), s.cp(), s.logs(),
		r.command("ports NAME", "List the ports that something listens on", "", cobra.ExactArgs(1),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				all, err := c.SandboxPorts(ctx, s.at(args[0]))
				if err != nil {
					return err
				}
				return listing(r, []any{"PORT", "ADDRESS"}, func(p sdk.SandboxPort) []any { return []any{p.Port, p.Address} })(all)
			}),
		r.command("sleep NAME", "Have a sandbox sleep until it is used", "", cobra.ExactArgs(1), shows(
			func(ctx context.Context, c *sdk.Client, args []string) (sdk.Sandbox, error) {
				return c.SleepSandbox(ctx, s.at(args[0]))
			}, s.show)),
		r.command("rm NAME…", "End sandboxes and remove all there is of them", "", cobra.MinimumNArgs(1),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				var errs []error // one that cannot be removed does not keep the others
				for i := range args {
					errs = append(errs, r.removes(func(ctx context.Context, c *sdk.Client, args []string) error {
						return c.DeleteSandbox(ctx, s.at(args[0]))
					})(ctx, c, args[i:i+1]))
				}
				return errors.Join(errs...)
			}))
	return cmd
}

func (s *sandboxes) at(name string) sdk.SandboxRef {
	return sdk.SandboxRef{Session: s.session, Name: name}
}

func (s *sandboxes) create() *cobra.Command {
	var image, snapshot string
	var filesOnly bool
	var env, subPaths []string
	var sleepAfter, timeout time.Duration
	cmd := s.command("create NAME", "Make a sandbox, unless there is one of that name", "  atoll sandbox create builder --image node:22 --sleep-after 10m\n  atoll sandbox create again --snapshot snap-0123456789abcdef", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			in := sdk.NewSandbox{Name: args[0], Session: &s.session}
			if image != "" {
				in.Image = &image
			}
			if snapshot != "" {
				in.Snapshot = &snapshot
			}
			if filesOnly {
				in.FilesOnly = &filesOnly
			}
			vars, err := pairs("env", env)
			if err != nil {
				return err
			}
			for name, value := range vars {
				if in.EnvVars == nil {
					in.EnvVars = map[string]string{}
				}
				in.EnvVars[name] = value
			}
			if len(subPaths) > 0 {
				in.SubPaths = &subPaths
			}
			in.SleepAfterMS, in.TimeoutMS = milliseconds(sleepAfter), milliseconds(timeout)
			sb, err := c.CreateSandbox(ctx, in)
			if err != nil {
				return err
			}
			return s.show(sb)
		})
	flags := cmd.Flags()
	flags.StringVar(&image, "image", "", "such as node:22 (that of the key's environment)")
	flags.StringVar(&snapshot, "snapshot", "", "what it begins with, processes and all (nothing)")
	flags.BoolVar(&filesOnly, "files-only", false, "begin with the snapshot's files alone")
	flags.StringArrayVarP(&env, "env", "e", nil, "variable for its programs, NAME=value; may be repeated")
	flags.StringArrayVar(&subPaths, "sub-path", nil, "what it is to see of a connection, /data/SLUG/PATH; may be repeated (all that the key may)")
	flags.DurationVar(&sleepAfter, "sleep-after", 0, "without use it sleeps after this time (the server's)")
	flags.DurationVar(&timeout, "timeout", 0, "it is removed after this time (as long as the plan allows)")
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
			return s.showAll(list)
		})
	cmd.Flags().BoolVar(&all, "all", false, "of all sessions")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "list what is left of sandboxes that no record knows")
	cmd.Flags().BoolVar(&reap, "reap", false, "remove the orphans, and list which they were")
	return cmd
}

func (s *sandboxes) fork() *cobra.Command {
	var count int
	cmd := s.command("fork NAME", "Make copies of a sandbox, processes and all", "  atoll sandbox fork builder --count 5", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			copies, err := c.ForkSandbox(ctx, s.at(args[0]), count)
			if err != nil {
				return err
			}
			return s.showAll(copies)
		})
	cmd.Flags().IntVar(&count, "count", 1, "how many")
	return cmd
}

func (s *sandboxes) show(sb sdk.Sandbox) error {
	return s.print(sb, func(w io.Writer) {
		row(w, "sandbox", sb.SandboxID)
		row(w, "name", sb.Name)
		row(w, "image", sb.Image)
		row(w, "status", statusOf(sb))
		row(w, "detail", sb.Detail)
		row(w, "mounts", strings.Join(sb.Mounts, ", "))
		row(w, "expires", whenOr(sb.ExpiresAt, "-"))
	})
}

func (s *sandboxes) showAll(list []sdk.Sandbox) error {
	return listing(s.remote, []any{"SESSION", "NAME", "ID", "IMAGE", "STATUS", "USED", "EXPIRES"}, func(sb sdk.Sandbox) []any {
		return []any{sb.Session, sb.Name, sb.SandboxID, sb.Image, statusOf(sb), when(sb.UsedAt), whenOr(sb.ExpiresAt, "-")}
	})(list)
}

// statusOf is a status, and how one that sleeps is kept.
func statusOf(sb sdk.Sandbox) string {
	if sb.Kept == "" {
		return sb.Status
	}
	return sb.Status + " (" + sb.Kept + ")"
}

// orphans are the operator's business: the key is the admin's.
func (s *sandboxes) orphans(ctx context.Context, reap bool) error {
	operator := *s.remote
	operator.local = adminKeyFile
	c, err := operator.client()
	if err != nil {
		return err
	}
	find := c.Orphans
	if reap {
		find = c.Reap
	}
	ids, err := find(ctx)
	if err != nil {
		return err
	}
	return listing(s.remote, []any{"ID"}, func(id string) []any { return []any{id} })(ids)
}
