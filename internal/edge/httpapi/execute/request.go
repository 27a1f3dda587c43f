package execute

import (
	"net/http"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ExecuteRequest is the body of POST /v1/sandbox/execute. Optional fields may be null,
// which is the same as leaving them out.
type ExecuteRequest struct {
	Code     *string              `json:"code" required:"true" minLength:"1" maxLength:"1048576" doc:"Code to execute: 1 byte to 1 MB (1,048,576 bytes of UTF-8)." example:"print(\"Hello\")"`
	Language *language.Name       `json:"language,omitzero" default:"" doc:"Language of the code."`
	Timeout  *wire.Seconds        `json:"timeout,omitzero" minimum:"1" default:"60" doc:"Most seconds the program may run. Above the plan's maximum the request returns 429."`
	EnvVars  map[string]wire.Text `json:"env_vars,omitzero" nullable:"true" doc:"Environment variables for this execution: at most 50 and 64 KB together with those of the environment. Names: an uppercase letter, then uppercase letters, digits and underscores, at most 128 characters, none of the reserved names. Values: at most 4,096 characters."`
	Metadata map[string]wire.Text `json:"metadata,omitzero" nullable:"true" doc:"Kept with the execution's record, never shown to the program. At most 10 keys of 1 to 40 characters with values of at most 256."`

	WebhookURL *wire.Text `json:"webhook_url,omitzero" maxLength:"2048" doc:"Where the result is sent, with Prefer: respond-async only; HTTPS, and no private address. Without it the key's own URL is used, if it has one."`

	SubPaths []wire.Text `json:"sub_paths,omitzero" nullable:"true" maxItems:"10" doc:"Narrows mounted connections for this execution: /data/{slug}/{path}, at most 512 characters, one entry for each connection. Paths lie within the prefixes of the connection and of the key."`

	Input

	Partial *bool `json:"partial,omitzero" default:"false" doc:"In streams, sends the beginning of a line once the program has been silent for 100 ms, as progress bars and prompts need. Without it an output event is a whole line."`

	ThreadID *wire.Text `json:"thread_id,omitzero" nullable:"true" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$" doc:"Names a thread: the home directory is what the thread's last execution left, and is saved for the next. One execution of a thread at a time; another returns 409."`
}

// request gives the domain's form: the one place where a field of the request becomes one
// of an execution. policy has the defaults.
func (in *ExecuteRequest) request(policy execution.Policy) (_ execution.Request, err error) {
	req := execution.Request{
		Code:     *in.Code,
		Language: language.Default,
		Timeout:  policy.DefaultTimeout(),
		Env:      wire.StringMap(in.EnvVars),
		Metadata: wire.StringMap(in.Metadata),
	}
	if in.ThreadID != nil {
		if req.Thread = string(*in.ThreadID); req.Thread == "" {
			return req, httpapi.Invalid("thread_id must not be empty; leave it out for a home that does not outlive the execution")
		}
	}
	if in.Language != nil {
		req.Language = *in.Language
	}
	req.Partial = in.Partial != nil && *in.Partial
	if in.Timeout != nil {
		req.Timeout = in.Timeout.Duration()
	}
	if req.Input, err = in.input(); err != nil {
		return req, err
	}
	req.SubPaths, err = storage.ParseSubPaths(wire.Strings(in.SubPaths))
	return req, err
}

// delivery is how a client wants the result. To be told later wins over a stream: the
// client said that it will not stay.
func delivery(h http.Header) execution.Delivery {
	switch {
	case httpapi.PrefersAsync(h):
		return execution.Async
	case httpapi.Accepts(h, httpapi.NDJSON):
		return execution.Streamed
	}
	return execution.Inline
}
