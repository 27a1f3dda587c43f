package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// snapshot keeps a sandbox as it is now.
func (s *sandboxes) snapshot() *cobra.Command {
	var keep time.Duration
	cmd := s.command("snapshot NAME", "Save a snapshot of a sandbox with its processes", `  atoll sandbox snapshot builder --keep 720h
  atoll sandbox create again --snapshot snap-0123456789abcdef`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			sn, err := c.CreateSnapshot(ctx, s.at(args[0]), keep)
			if err != nil {
				return err
			}
			return s.showSnapshot(sn)
		})
	cmd.Flags().DurationVar(&keep, "keep", 0, "lifetime, after which Atoll deletes it (the server's rule)")
	return cmd
}

func (a *cli) snapshotCommand() *cobra.Command {
	cmd, r := a.remoteGroup("snapshot", "List and delete snapshots of named sandboxes",
		`A snapshot holds the files of a sandbox at one moment, and its processes and
memory if Atoll could save them. It outlives the sandbox.`,
		`  atoll sandbox snapshot builder
  atoll snapshot list
  atoll sandbox create again --snapshot snap-0123456789abcdef`, devKeyFile, map[string]completer{"ID": snapshotIDs})
	var limit int
	list := r.command("list", "List snapshots, newest first", "", cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			all, err := c.Snapshots().All(ctx, limit)
			if err != nil {
				return err
			}
			return listing(&r.printer, []any{"ID", "SESSION", "NAME", "IMAGE", "MEMORY", "SIZE", "CREATED", "EXPIRES"}, func(sn sdk.Snapshot) []any {
				return []any{sn.SnapshotID, sn.Session, sn.Name, sn.Image, onOff(sn.Memory), humanBytes(sn.SizeBytes), when(sn.CreatedAt), whenOr(sn.ExpiresAt, "-")}
			})(all)
		})
	list.Flags().IntVar(&limit, "limit", 100, "snapshots to list at most; 0 for all")
	cmd.AddCommand(list,
		r.command("show ID", "Show a snapshot", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Snapshot), r.showSnapshot)),
		r.deletion("", "ID", "Delete snapshots; sandboxes created from them continue", "", func(ctx context.Context, c *sdk.Client, _ []string, id string) error {
			return c.DeleteSnapshot(ctx, id)
		}))
	return cmd
}

func (r *remote) showSnapshot(sn sdk.Snapshot) error {
	return r.print(sn, func(w io.Writer) {
		row(w, "snapshot", sn.SnapshotID)
		row(w, "sandbox", sn.SandboxID)
		row(w, "name", sn.Name)
		row(w, "image", sn.Image)
		row(w, "memory", onOff(sn.Memory))
		row(w, "detail", sn.Detail)
		row(w, "size", humanBytes(sn.SizeBytes))
		row(w, "created", when(sn.CreatedAt))
		row(w, "expires", whenOr(sn.ExpiresAt, "-"))
	})
}
