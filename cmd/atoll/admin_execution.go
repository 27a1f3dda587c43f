package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/execution"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) executionCommand() *cobra.Command {
	cmd, r := a.remoteGroup("execution", "List, show, cancel and delete executions",
		`The executions of one tenant: the one whose key this is.`,
		`  atoll execution list --status running
  atoll execution output trc_… --follow
  atoll execution cancel trc_…`, devKeyFile, map[string]completer{"TRACE_ID": traceIDs})
	cancel := r.command("cancel TRACE_ID", "Cancel a running execution immediately", "", cobra.ExactArgs(1), shows(one((*sdk.Client).CancelExecution), r.showExecution))
	cancel.Aliases = []string{"kill"}
	cmd.AddCommand(r.executionList(),
		r.command("show TRACE_ID", "Show an execution with its output", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Execution), r.showExecution)),
		r.executionOutput(), cancel,
		r.deletion("", "TRACE_ID", "Delete executions that have ended, with their output and files", "", func(ctx context.Context, c *sdk.Client, _ []string, id string) error {
			return c.DeleteExecution(ctx, id)
		}))
	return cmd
}

func (r *remote) executionList() *cobra.Command {
	var f struct {
		status, language, key, thread string
		metadata                      []string
		limit                         int
	}
	var s *span
	cmd := r.command("list", "List executions, newest first", `  atoll execution list --status failed --since 1h
  atoll execution list --metadata order=4711`, cobra.NoArgs,
		func(ctx context.Context, c *sdk.Client, _ []string) error {
			q := url.Values{}
			if err := cmp.Or(s.add(q), filter(q, map[string]string{"status": f.status, "language": f.language, "key": f.key, "thread_id": f.thread}, f.metadata)); err != nil {
				return err
			}
			all, err := c.Executions(q).All(ctx, f.limit)
			if err != nil {
				return err
			}
			return listing(&r.printer, []any{"TRACE", "STATUS", "LANGUAGE", "DELIVERY", "EXIT", "MS", "CREATED", "ERROR"}, func(e sdk.ExecutionSummary) []any {
				return []any{e.TraceID, e.Status, e.Language, e.DeliveryMode, number(e.ExitCode), e.DurationMS, when(e.CreatedAt), text(e.Error)}
			})(all)
		})
	s = addSpan(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.status, "status", "", choices(execution.Statuses))
	flags.StringVar(&f.language, "language", "", choices(execution.Languages))
	flags.StringVar(&f.key, "key", "", "only executions of the key with this id")
	flags.StringVar(&f.thread, "thread", "", "only executions with this thread as home")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "only executions with this metadata, NAME=VALUE; may be repeated")
	flags.IntVar(&f.limit, "limit", 20, "executions to list at most; 0 for all")
	cmd.Aliases = append(cmd.Aliases, "ps")
	return cmd
}

func (r *remote) executionOutput() *cobra.Command {
	var stream string
	var follow bool
	cmd := r.command("output TRACE_ID", "Write an execution's output", `  atoll execution output trc_… > result.bin
  atoll execution output trc_… --stream stderr
  atoll execution output trc_… --follow`, cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			if !follow {
				return c.Output(ctx, args[0], stream, r.app.std.out)
			}
			return r.copyEvents(c.FollowExecution(ctx, args[0], 0))
		})
	cmd.Long = cmd.Short + `.

Without --follow it is one whole stream of an ended execution, as the bytes that
were kept. With it both streams come from the start, each to its own here, and go
on until the execution ends.`
	cmd.Flags().StringVar(&stream, "stream", "stdout", "stdout or stderr")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "both streams, until the execution ends")
	cmd.MarkFlagsMutuallyExclusive("stream", "follow")
	cmd.Aliases = []string{"logs"}
	return cmd
}

// copyEvents writes each stream of an execution to where it belongs here.
func (r *remote) copyEvents(events iter.Seq2[sdk.Event, error]) error {
	for ev, err := range events {
		if err != nil {
			return err
		}
		switch {
		case r.json:
			if err := json.NewEncoder(r.app.std.out).Encode(ev); err != nil {
				return err
			}
		case ev.Stream == string(execution.Stdout):
			_, _ = io.WriteString(r.app.std.out, ev.Data)
		case ev.Stream == string(execution.Stderr):
			_, _ = io.WriteString(r.app.std.err, ev.Data)
		}
	}
	return nil
}

func (r *remote) showExecution(e sdk.Execution) error {
	if err := r.print(e, func(w io.Writer) {
		row(w, "trace", e.TraceID)
		row(w, "status", e.Status)
		row(w, "language", e.Language)
		row(w, "delivery", e.DeliveryMode)
		row(w, "exit code", number(e.ExitCode))
		row(w, "error", text(e.Error))
		row(w, "milliseconds", e.DurationMS)
		row(w, "created", when(e.CreatedAt))
		row(w, "completed", whenOr(e.CompletedAt, "-"))
		row(w, "webhook", text(e.WebhookDeliveryStatus))
	}); err != nil || r.json {
		return err
	}
	for _, s := range []struct {
		name string
		data *string
	}{{"stdout", e.Stdout}, {"stderr", e.Stderr}} {
		if s.data != nil && *s.data != "" {
			if _, err := io.WriteString(r.app.std.out, "\n--- "+s.name+"\n"+*s.data); err != nil {
				return err
			}
		}
	}
	return nil
}
