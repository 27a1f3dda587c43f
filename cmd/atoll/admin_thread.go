package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) threadCommand() *cobra.Command {
	cmd, r := a.remoteGroup("thread", "Show, fill, save and delete threads",
		`A thread is a home directory that outlives the executions which name it as their
thread_id. These are the threads of one tenant: the one whose key this is.`,
		`  atoll thread list
  atoll thread put analysis data/in.csv ./in.csv
  atoll thread export analysis > analysis.tar`, devKeyFile, map[string]completer{"THREAD": threadNames})
	cmd.AddCommand(r.threadList(),
		r.command("show THREAD", "Show a thread's record", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Thread), r.showThread)),
		r.threadExpire(),
		r.deletion("", "THREAD", "Delete threads that no running execution uses", "", func(ctx context.Context, c *sdk.Client, _ []string, name string) error {
			return c.DeleteThread(ctx, name)
		}))
	cmd.AddCommand(r.threadFiles()...)
	return cmd
}

func (r *remote) threadList() *cobra.Command {
	var prefix string
	var limit int
	cmd := r.command("list", "List threads, by name", "  atoll thread list --prefix user-", cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			q := url.Values{}
			if prefix != "" {
				q.Set("prefix", prefix)
			}
			all, err := c.Threads(q).All(ctx, limit)
			if err != nil {
				return err
			}
			return listing(&r.printer, []any{"THREAD", "SIZE", "FILES", "SAVED", "EXPIRES"}, func(t sdk.Thread) []any {
				return []any{t.ThreadID, humanBytes(t.Bytes), t.Files, when(t.UpdatedAt), whenOr(t.ExpiresAt, "-")}
			})(all)
		})
	cmd.Flags().StringVar(&prefix, "prefix", "", "only threads whose id has this prefix")
	cmd.Flags().IntVar(&limit, "limit", 100, "threads to list at most; 0 for all")
	return cmd
}

func (r *remote) showThread(t sdk.Thread) error {
	return r.print(t, func(w io.Writer) {
		row(w, "thread", t.ThreadID)
		row(w, "size", humanBytes(t.Bytes))
		row(w, "files", t.Files)
		row(w, "created", when(t.CreatedAt))
		row(w, "saved", when(t.UpdatedAt))
		row(w, "expires", whenOr(t.ExpiresAt, "-"))
	})
}

func (r *remote) threadExpire() *cobra.Command {
	var in time.Duration
	var never bool
	cmd := r.command("expire THREAD", "Set when a thread expires", `  atoll thread expire analysis --in 720h
  atoll thread expire analysis --never`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			var change sdk.ThreadChange
			switch {
			case in > 0:
				at := time.Now().Add(in).UTC()
				change.ExpiresAt = &at
			case !never:
				return wrong("pass --in with a positive duration, or --never")
			}
			t, err := c.ChangeThread(ctx, args[0], change)
			if err != nil {
				return err
			}
			return r.showThread(t)
		})
	cmd.Flags().DurationVar(&in, "in", 0, "delete it after this time, such as 720h")
	cmd.Flags().BoolVar(&never, "never", false, "never expire; the server still deletes idle threads by its own rule")
	cmd.MarkFlagsMutuallyExclusive("in", "never")
	return cmd
}

// threadFiles are the commands that move files.
func (r *remote) threadFiles() []*cobra.Command {
	return []*cobra.Command{
		r.command("files THREAD [FOLDER]", "List a folder of a thread", "  atoll thread files analysis data", cobra.RangeArgs(1, 2),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				folder := ""
				if len(args) == 2 {
					folder = args[1]
				}
				all, err := c.ThreadFiles(args[0]).List(folder).All(ctx, 0)
				if err != nil {
					return err
				}
				return listing(&r.printer, []any{"NAME", "SIZE", "MODIFIED"}, func(f sdk.File) []any {
					name := f.Name
					if f.IsDirectory {
						name += "/"
					}
					return []any{name, bytesText(f.Size), whenOr(f.Modified, "-")}
				})(all)
			}),
		r.command("get THREAD PATH", "Write a file of a thread to stdout", "  atoll thread get analysis out.csv > out.csv", cobra.ExactArgs(2),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				return c.ThreadFiles(args[0]).Read(ctx, args[1], r.app.std.out)
			}),
		r.command("put THREAD PATH FILE", "Put a file into a thread, - for stdin", "  atoll thread put analysis data/in.csv ./in.csv", cobra.ExactArgs(3),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				return r.from(args[2], func(in io.Reader) error {
					_, err := c.ThreadFiles(args[0]).Write(ctx, args[1], in)
					return err
				})
			}),
		r.deleteThreadFile(),
		r.command("export THREAD", "Write a thread to stdout, as a tar archive", "  atoll thread export analysis > analysis.tar", cobra.ExactArgs(1),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				return c.ExportThread(ctx, args[0], r.app.std.out)
			}),
		r.command("import THREAD FILE", "Replace a thread's files with those of a tar archive, - for stdin", "  atoll thread import copy analysis.tar", cobra.ExactArgs(2),
			func(ctx context.Context, c *sdk.Client, args []string) error {
				return r.from(args[1], func(in io.Reader) error {
					_, err := c.ImportThread(ctx, args[0], in)
					return err
				})
			}),
	}
}

func (r *remote) deleteThreadFile() *cobra.Command {
	var force bool
	cmd := r.command("delete-file THREAD PATH…", "Delete files or folders of a thread", "", cobra.MinimumNArgs(2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			return r.deletes(args[1:], force, func(name string) error { return c.ThreadFiles(args[0]).Delete(ctx, name) })
		})
	cmd.Aliases = []string{"rm-file", "remove"}
	addForce(cmd, &force)
	return cmd
}

// from opens a file, or stdin for -.
func (r *remote) from(path string, use func(io.Reader) error) error {
	if path == "-" {
		return use(r.app.std.in)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(f)
}
