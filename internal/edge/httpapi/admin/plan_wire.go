package admin

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Plan is a plan.
type Plan struct {
	Name             string  `json:"name"`
	MaxCPU           float64 `json:"max_cpu" doc:"Cores of a sandbox; 0 for no bound."`
	MaxMemory        int64   `json:"max_memory" doc:"Bytes of a sandbox; 0 for no bound."`
	Concurrency      int     `json:"concurrency" doc:"Executions at the same time; 0 for no bound."`
	MaxTimeout       int64   `json:"max_timeout" doc:"Seconds; 0 for the server's own bound."`
	Streaming        bool    `json:"streaming" doc:"Whether executions may be streamed."`
	Async            bool    `json:"async" doc:"Webhook delivery."`
	KeyIsolation     bool    `json:"key_isolation" doc:"Whether environments may have isolation key."`
	MaxOutput        int64   `json:"max_output" doc:"Bytes of each stream that are kept whole."`
	MaxThreads       int     `json:"max_threads" doc:"Threads that the tenant may have; 0 for no bound."`
	MaxThreadSize    int64   `json:"max_thread_size" doc:"Bytes of a thread's files; 0 for no bound."`
	MaxOutputs       int64   `json:"max_outputs" doc:"Bytes that ended executions keep together: outputs and the files they gave back; 0 for no bound."`
	MaxSandboxes     int     `json:"max_sandboxes" doc:"Named sandboxes at the same time, sleeping ones too; 0 for no bound."`
	MaxSandboxMemory int64   `json:"max_sandbox_memory" doc:"Bytes of memory of named sandboxes together, except those asleep on disk; 0 for no bound."`
	MaxSandboxDisk   int64   `json:"max_sandbox_disk" doc:"Bytes of the files of a named sandbox; 0 for the server's own bound."`
	MaxSandboxLife   int64   `json:"max_sandbox_life" doc:"Seconds that a named sandbox may be there; 0 for no bound."`
	MaxSnapshots     int     `json:"max_snapshots" doc:"Snapshots that the tenant may have; 0 for no bound."`
	MaxSnapshotSize  int64   `json:"max_snapshot_size" doc:"Bytes of all snapshots together, before they are compressed; 0 for no bound."`
	MaxRequestRate   int64   `json:"max_request_rate" doc:"Requests per second of all keys of a tenant together, on average over 10 s; 0 for no bound."`
	MaxKeyRate       int64   `json:"max_key_request_rate" doc:"Requests per second of each key; 0 for no bound."`
	MaxUploadRate    int64   `json:"max_upload_rate" doc:"Bytes of request bodies per second of all keys of a tenant together; 0 for no bound."`
	MaxKeyUpload     int64   `json:"max_key_upload_rate" doc:"Bytes of request bodies per second of each key; 0 for no bound."`
	MaxResponseRate  int64   `json:"max_response_rate" doc:"Responses per minute of all keys of a tenant together, for each model; 0 for no bound."`
	MaxKeyResponse   int64   `json:"max_key_response_rate" doc:"Responses per minute of each key, for each model; 0 for no bound."`
	MaxTokenRate     int64   `json:"max_token_rate" doc:"Tokens of responses per minute of all keys of a tenant together, for each model; 0 for no bound."`
	MaxKeyTokenRate  int64   `json:"max_key_token_rate" doc:"Tokens of responses per minute of each key, for each model; 0 for no bound."`
	BuiltIn          bool    `json:"built_in" doc:"One of those every installation has; it can be neither changed nor removed."`
}

// PlanBounds is the body that makes or replaces a plan. Omitted fields are 0
// or false; max_output is 100 MiB.
type PlanBounds struct {
	MaxCPU           *float64      `json:"max_cpu,omitzero" minimum:"0" maximum:"1024" doc:"Cores of a sandbox at most; 0 or omitted for no bound."`
	MaxMemory        *int64        `json:"max_memory,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes of memory of a sandbox at most; 0 or omitted for no bound."`
	Concurrency      *int          `json:"concurrency,omitzero" minimum:"0" maximum:"1000000" doc:"Executions at the same time; 0 or omitted for no bound."`
	MaxTimeout       *wire.Seconds `json:"max_timeout,omitzero" minimum:"0" maximum:"2592000" doc:"Seconds that an execution may run; 0 or omitted for no bound."`
	Streaming        *bool         `json:"streaming,omitzero" doc:"Whether executions may be streamed."`
	Async            *bool         `json:"async,omitzero" doc:"Whether executions may be asynchronous."`
	KeyIsolation     *bool         `json:"key_isolation,omitzero" doc:"Whether environments may have the isolation key."`
	MaxOutput        *int64        `json:"max_output,omitzero" minimum:"65536" maximum:"1099511627776" default:"104857600" doc:"Bytes that are kept of each stream of an execution."`
	MaxThreads       *int          `json:"max_threads,omitzero" minimum:"0" maximum:"10000000" doc:"Threads at the same time; 0 or omitted for no bound."`
	MaxThreadSize    *int64        `json:"max_thread_size,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes of files of one thread; 0 or omitted for no bound."`
	MaxOutputs       *int64        `json:"max_outputs,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes that ended executions and responses may keep together; 0 or omitted for no bound."`
	MaxSandboxes     *int          `json:"max_sandboxes,omitzero" minimum:"0" maximum:"1000000" doc:"Named sandboxes at the same time, sleeping and lost ones too; 0 or omitted for no bound."`
	MaxSandboxMemory *int64        `json:"max_sandbox_memory,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes of memory of all named sandboxes that are in memory; 0 or omitted for no bound."`
	MaxSandboxDisk   *int64        `json:"max_sandbox_disk,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes of files of one named sandbox; 0 or omitted for no bound."`
	MaxSandboxLife   *wire.Seconds `json:"max_sandbox_life,omitzero" minimum:"0" maximum:"315360000" doc:"Seconds from a named sandbox's making to its end at most; 0 or omitted for no bound."`
	MaxSnapshots     *int          `json:"max_snapshots,omitzero" minimum:"0" maximum:"1000000" doc:"Snapshots at the same time; 0 or omitted for no bound."`
	MaxSnapshotSize  *int64        `json:"max_snapshot_size,omitzero" minimum:"0" maximum:"17592186044416" doc:"Bytes of all snapshots together, before compression; 0 or omitted for no bound."`
	MaxRequestRate   *int64        `json:"max_request_rate,omitzero" minimum:"0" maximum:"1000000" doc:"Requests per second of the tenant; 0 or omitted for no bound."`
	MaxKeyRate       *int64        `json:"max_key_request_rate,omitzero" minimum:"0" maximum:"1000000" doc:"Requests per second of each key; 0 or omitted for no bound."`
	MaxUploadRate    *int64        `json:"max_upload_rate,omitzero" minimum:"0" maximum:"1099511627776" doc:"0, or at least 1048576."`
	MaxKeyUpload     *int64        `json:"max_key_upload_rate,omitzero" minimum:"0" maximum:"1099511627776" doc:"0, or at least 1048576."`
	MaxResponseRate  *int64        `json:"max_response_rate,omitzero" minimum:"0" maximum:"1000000" doc:"Responses per minute of the tenant, for each model; 0 or omitted for no bound."`
	MaxKeyResponse   *int64        `json:"max_key_response_rate,omitzero" minimum:"0" maximum:"1000000" doc:"Responses per minute of each key, for each model; 0 or omitted for no bound."`
	MaxTokenRate     *int64        `json:"max_token_rate,omitzero" minimum:"0" maximum:"1000000000000" doc:"Tokens of responses per minute of the tenant, for each model; 0 or omitted for no bound."`
	MaxKeyTokenRate  *int64        `json:"max_key_token_rate,omitzero" minimum:"0" maximum:"1000000000000" doc:"Tokens per minute of each key, for each model; 0 or omitted for no bound."`
}

func (b PlanBounds) domain(name string) tenant.Plan {
	out := tenant.Plan{Name: name, MaxOutput: 100 << 20}
	assign(&out.MaxCPU, b.MaxCPU)
	assign(&out.MaxMemory, b.MaxMemory)
	assign(&out.Concurrency, b.Concurrency)
	assign(&out.Streaming, b.Streaming)
	assign(&out.Async, b.Async)
	assign(&out.KeyIsolation, b.KeyIsolation)
	assign(&out.MaxOutput, b.MaxOutput)
	assign(&out.MaxThreads, b.MaxThreads)
	assign(&out.MaxThreadSize, b.MaxThreadSize)
	assign(&out.MaxOutputs, b.MaxOutputs)
	assign(&out.MaxSandboxes, b.MaxSandboxes)
	assign(&out.MaxSandboxMemory, b.MaxSandboxMemory)
	assign(&out.MaxSandboxDisk, b.MaxSandboxDisk)
	assign(&out.MaxSnapshots, b.MaxSnapshots)
	assign(&out.MaxSnapshotSize, b.MaxSnapshotSize)
	assign(&out.MaxRequestRate, b.MaxRequestRate)
	assign(&out.MaxKeyRequestRate, b.MaxKeyRate)
	assign(&out.MaxUploadRate, b.MaxUploadRate)
	assign(&out.MaxKeyUploadRate, b.MaxKeyUpload)
	assign(&out.MaxResponseRate, b.MaxResponseRate)
	assign(&out.MaxKeyResponseRate, b.MaxKeyResponse)
	assign(&out.MaxTokenRate, b.MaxTokenRate)
	assign(&out.MaxKeyTokenRate, b.MaxKeyTokenRate)
	if b.MaxSandboxLife != nil {
		out.MaxSandboxLife = b.MaxSandboxLife.Duration()
	}
	if b.MaxTimeout != nil {
		out.MaxTimeout = b.MaxTimeout.Duration()
	}
	return out
}

func assign[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func planOf(p tenant.Plan) Plan {
	return Plan{
		p.Name, p.MaxCPU, p.MaxMemory, p.Concurrency, int64(p.MaxTimeout / time.Second), p.Streaming, p.Async, p.KeyIsolation, p.MaxOutput, p.MaxThreads, p.MaxThreadSize, p.MaxOutputs,
		p.MaxSandboxes, p.MaxSandboxMemory, p.MaxSandboxDisk, int64(p.MaxSandboxLife / time.Second), p.MaxSnapshots, p.MaxSnapshotSize,
		p.MaxRequestRate, p.MaxKeyRequestRate, p.MaxUploadRate, p.MaxKeyUploadRate,
		p.MaxResponseRate, p.MaxKeyResponseRate, p.MaxTokenRate, p.MaxKeyTokenRate, p.BuiltIn,
	}
}
