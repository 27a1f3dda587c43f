package main

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) planCommand() *cobra.Command {
	cmd, r := a.remoteGroup("plan", "Create, show and change plans",
		`A plan limits its tenants' usage. The plans free, pro and enterprise are built in
and cannot be changed or deleted.`,
		`  atoll plan list
  atoll plan set team --max-cpu 2 --max-memory 2GiB --concurrency 20 --max-timeout 10m --streaming --async
  atoll tenant set acme --plan team`, adminKeyFile, map[string]completer{"NAME": planNames})

	var f struct {
		cpu              float64
		memory, output   string
		threadSize       string
		outputs          string
		concurrency      int64
		threads          int64
		timeout          time.Duration
		streaming, async bool
		keyIsolation     bool
		sandboxes        int64
		sandboxMemory    string
		sandboxDisk      string
		sandboxLife      time.Duration
		snapshots        int64
		snapshotSize     string
		requests         int64
		keyRequests      int64
		uploads          string
		keyUploads       string
		responses        int64
		keyResponses     int64
		tokens           int64
		keyTokens        int64
	}
	var set *cobra.Command
	set = r.command("set NAME", "Create a plan, or change one that is not built in; omitted settings stay unchanged", "  atoll plan set team --max-cpu 2 --concurrency 20 --streaming", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			b, err := planBounds(ctx, c, args[0])
			if err != nil {
				return err
			}
			setIfGiven(set, "max-cpu", &b.MaxCPU, &f.cpu)
			setIfGiven(set, "concurrency", &b.Concurrency, &f.concurrency)
			setIfGiven(set, "streaming", &b.Streaming, &f.streaming)
			setIfGiven(set, "async", &b.Async, &f.async)
			setIfGiven(set, "key-isolation", &b.KeyIsolation, &f.keyIsolation)
			setIfGiven(set, "max-threads", &b.MaxThreads, &f.threads)
			setIfGiven(set, "max-sandboxes", &b.MaxSandboxes, &f.sandboxes)
			setIfGiven(set, "max-snapshots", &b.MaxSnapshots, &f.snapshots)
			setIfGiven(set, "max-request-rate", &b.MaxRequestRate, &f.requests)
			setIfGiven(set, "max-key-request-rate", &b.MaxKeyRequestRate, &f.keyRequests)
			setIfGiven(set, "max-response-rate", &b.MaxResponseRate, &f.responses)
			setIfGiven(set, "max-key-response-rate", &b.MaxKeyResponseRate, &f.keyResponses)
			setIfGiven(set, "max-token-rate", &b.MaxTokenRate, &f.tokens)
			setIfGiven(set, "max-key-token-rate", &b.MaxKeyTokenRate, &f.keyTokens)
			seconds, life := int64(f.timeout/time.Second), int64(f.sandboxLife/time.Second)
			setIfGiven(set, "max-timeout", &b.MaxTimeout, &seconds)
			setIfGiven(set, "max-sandbox-life", &b.MaxSandboxLife, &life)
			for flag, to := range map[string]struct {
				text  string
				field **int64
			}{
				"max-memory": {f.memory, &b.MaxMemory}, "max-output": {f.output, &b.MaxOutput}, "max-thread-size": {f.threadSize, &b.MaxThreadSize},
				"max-outputs":        {f.outputs, &b.MaxOutputs},
				"max-sandbox-memory": {f.sandboxMemory, &b.MaxSandboxMemory}, "max-sandbox-disk": {f.sandboxDisk, &b.MaxSandboxDisk},
				"max-snapshot-size": {f.snapshotSize, &b.MaxSnapshotSize}, "max-upload-rate": {f.uploads, &b.MaxUploadRate},
				"max-key-upload-rate": {f.keyUploads, &b.MaxKeyUploadRate},
			} {
				n, err := size(flag, to.text)
				if err != nil {
					return err
				}
				setIfGiven(set, flag, to.field, &n)
			}
			p, err := c.PutPlan(ctx, args[0], b)
			if err != nil {
				return err
			}
			return r.showPlan(p)
		})
	set.Long = set.Short + ".\n\nIn a new plan, omitted settings have their defaults."
	flags := set.Flags()
	flags.SortFlags = false
	flags.Float64Var(&f.cpu, "max-cpu", 0, "cores of a sandbox; 0 for no limit")
	flags.StringVar(&f.memory, "max-memory", "0", "memory of a sandbox, such as 2GiB; 0 for no limit")
	flags.Int64Var(&f.concurrency, "concurrency", 0, "executions at the same time; 0 for no limit")
	flags.DurationVar(&f.timeout, "max-timeout", 0, "longest execution; 0 for the server's limit")
	flags.BoolVar(&f.streaming, "streaming", false, "whether output can be streamed")
	flags.BoolVar(&f.async, "async", false, "whether executions can be asynchronous, with webhooks")
	flags.BoolVar(&f.keyIsolation, "key-isolation", false, "whether environments may have executions of one key share a kernel")
	flags.StringVar(&f.output, "max-output", "100MiB", "most output of each stream that is stored")
	flags.Int64Var(&f.threads, "max-threads", 0, "threads of a tenant; 0 for no limit")
	flags.StringVar(&f.threadSize, "max-thread-size", "0", "files of a thread, such as 1GiB; 0 for no limit")
	flags.StringVar(&f.outputs, "max-outputs", "0", "stored outputs and files of ended executions together, such as 10GiB; 0 for no limit")
	flags.Int64Var(&f.sandboxes, "max-sandboxes", 0, "named sandboxes of a tenant; 0 for no limit")
	flags.StringVar(&f.sandboxMemory, "max-sandbox-memory", "0", "memory of a tenant's named sandboxes together, such as 8GiB; 0 for no limit")
	flags.StringVar(&f.sandboxDisk, "max-sandbox-disk", "0", "files of a named sandbox, such as 2GiB; 0 for the server's limit")
	flags.DurationVar(&f.sandboxLife, "max-sandbox-life", 0, "longest lifetime of a named sandbox; 0 for no limit")
	flags.Int64Var(&f.snapshots, "max-snapshots", 0, "snapshots of a tenant; 0 for no limit")
	flags.StringVar(&f.snapshotSize, "max-snapshot-size", "0", "snapshots of a tenant together, such as 50GiB; 0 for no limit")
	flags.Int64Var(&f.requests, "max-request-rate", 0, "requests per second of a tenant; 0 for no limit")
	flags.Int64Var(&f.keyRequests, "max-key-request-rate", 0, "requests per second of each key; 0 for no limit")
	flags.StringVar(&f.uploads, "max-upload-rate", "0", "bytes per second that a tenant sends, such as 50MiB; 0 for no limit")
	flags.StringVar(&f.keyUploads, "max-key-upload-rate", "0", "bytes per second that each key sends, such as 25MiB; 0 for no limit")
	flags.Int64Var(&f.responses, "max-response-rate", 0, "responses per minute of a tenant, for each model; 0 for no limit")
	flags.Int64Var(&f.keyResponses, "max-key-response-rate", 0, "responses per minute of each key, for each model; 0 for no limit")
	flags.Int64Var(&f.tokens, "max-token-rate", 0, "tokens of responses per minute of a tenant, for each model; 0 for no limit")
	flags.Int64Var(&f.keyTokens, "max-key-token-rate", 0, "tokens of responses per minute of each key, for each model; 0 for no limit")

	cmd.AddCommand(
		r.command("list", "List plans", "", cobra.NoArgs, shows(
			func(ctx context.Context, c *sdk.Client, _ []string) ([]sdk.Plan, error) { return c.Plans().All(ctx, 0) },
			listing(&r.printer, []any{"NAME", "CPU", "MEMORY", "CONCURRENCY", "TIMEOUT", "STREAMING", "ASYNC", "OUTPUT", "THREADS", "THREAD SIZE", "SANDBOXES", "BUILT IN"}, func(p sdk.Plan) []any {
				return []any{p.Name, bound(p.MaxCPU), memoryBound(p.MaxMemory), bound(float64(p.Concurrency)), timeoutBound(p.MaxTimeout), onOff(p.Streaming), onOff(p.Async), bytesText(p.MaxOutput), bound(float64(p.MaxThreads)), memoryBound(p.MaxThreadSize), bound(float64(p.MaxSandboxes)), p.BuiltIn}
			}))),
		r.command("show NAME", "Show a plan", "", cobra.ExactArgs(1), shows(one((*sdk.Client).Plan), r.showPlan)),
		set,
		r.deletion("", "NAME", "Delete plans that no tenant has", "", func(ctx context.Context, c *sdk.Client, _ []string, name string) error {
			return c.DeletePlan(ctx, name)
		}))
	return cmd
}

// planBounds returns the bounds of a plan, and none of a plan that does not exist.
func planBounds(ctx context.Context, c *sdk.Client, name string) (sdk.PlanBounds, error) {
	p, err := c.Plan(ctx, name)
	if missing(err) {
		return sdk.PlanBounds{}, nil
	}
	if err != nil {
		return sdk.PlanBounds{}, err
	}
	return sdk.PlanBounds{
		Async: &p.Async, Concurrency: &p.Concurrency, MaxCPU: &p.MaxCPU, MaxMemory: &p.MaxMemory, MaxOutput: &p.MaxOutput,
		MaxSandboxDisk: &p.MaxSandboxDisk, MaxSandboxLife: &p.MaxSandboxLife, MaxSandboxMemory: &p.MaxSandboxMemory, MaxSandboxes: &p.MaxSandboxes,
		MaxSnapshotSize: &p.MaxSnapshotSize, MaxSnapshots: &p.MaxSnapshots, MaxThreadSize: &p.MaxThreadSize, MaxThreads: &p.MaxThreads,
		MaxTimeout: &p.MaxTimeout, MaxOutputs: &p.MaxOutputs, Streaming: &p.Streaming, KeyIsolation: &p.KeyIsolation,
		MaxRequestRate: &p.MaxRequestRate, MaxKeyRequestRate: &p.MaxKeyRequestRate, MaxUploadRate: &p.MaxUploadRate, MaxKeyUploadRate: &p.MaxKeyUploadRate,
		MaxResponseRate: &p.MaxResponseRate, MaxKeyResponseRate: &p.MaxKeyResponseRate, MaxTokenRate: &p.MaxTokenRate, MaxKeyTokenRate: &p.MaxKeyTokenRate,
	}, nil
}

// setIfGiven sets a field if its flag is on the command line.
func setIfGiven[T any](cmd *cobra.Command, flag string, field **T, value *T) {
	if cmd.Flags().Changed(flag) {
		*field = value
	}
}

func bound(n float64) string {
	if n == 0 {
		return "any"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func memoryBound(n int64) string {
	if n == 0 {
		return "any"
	}
	return bytesText(n)
}

func timeoutBound(seconds int64) string {
	if seconds == 0 {
		return "default"
	}
	return (time.Duration(seconds) * time.Second).String()
}

func lifeBound(seconds int64) string {
	if seconds == 0 {
		return "any"
	}
	return (time.Duration(seconds) * time.Second).String()
}

func (r *remote) showPlan(p sdk.Plan) error {
	return r.print(p, func(w io.Writer) {
		row(w, "name", p.Name)
		row(w, "cpu", bound(p.MaxCPU))
		row(w, "memory", memoryBound(p.MaxMemory))
		row(w, "concurrency", bound(float64(p.Concurrency)))
		row(w, "timeout", timeoutBound(p.MaxTimeout))
		row(w, "streaming", onOff(p.Streaming))
		row(w, "async", onOff(p.Async))
		row(w, "key isolation", onOff(p.KeyIsolation))
		row(w, "output", bytesText(p.MaxOutput))
		row(w, "threads", bound(float64(p.MaxThreads)))
		row(w, "thread size", memoryBound(p.MaxThreadSize))
		row(w, "kept outputs", memoryBound(p.MaxOutputs))
		row(w, "sandboxes", bound(float64(p.MaxSandboxes)))
		row(w, "sandbox memory", memoryBound(p.MaxSandboxMemory))
		row(w, "sandbox disk", memoryBound(p.MaxSandboxDisk))
		row(w, "sandbox life", lifeBound(p.MaxSandboxLife))
		row(w, "snapshots", bound(float64(p.MaxSnapshots)))
		row(w, "snapshot size", memoryBound(p.MaxSnapshotSize))
		row(w, "requests per second", bound(float64(p.MaxRequestRate)))
		row(w, "requests a second, of a key", bound(float64(p.MaxKeyRequestRate)))
		row(w, "uploads a second", memoryBound(p.MaxUploadRate))
		row(w, "uploads a second, of a key", memoryBound(p.MaxKeyUploadRate))
		row(w, "responses a minute", bound(float64(p.MaxResponseRate)))
		row(w, "responses a minute, of a key", bound(float64(p.MaxKeyResponseRate)))
		row(w, "tokens a minute", bound(float64(p.MaxTokenRate)))
		row(w, "tokens a minute, of a key", bound(float64(p.MaxKeyTokenRate)))
		row(w, "built in", p.BuiltIn)
	})
}
