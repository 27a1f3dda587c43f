package sandbox

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// NewContext is the body that starts a code context.
type NewContext struct {
	Language *language.ContextName `json:"language" required:"true"`
	Dir      *string               `json:"working_dir,omitzero" default:"/home/user" doc:"The folder to begin in."`
}

// CodeContext is an interpreter that stays.
type CodeContext struct {
	ID        codecontext.ID       `json:"context_id" doc:"Its id, by which runs name it."`
	Language  language.ContextName `json:"language"`
	Dir       string               `json:"working_dir" doc:"The folder that it works in."`
	Status    string               `json:"status" enum:"idle,running,ended" doc:"An ended context must be restarted."`
	ExitCode  *int                 `json:"exit_code" doc:"Of an interpreter that has ended."`
	CreatedAt time.Time            `json:"created_at"`
}

// CodeContexts lists the contexts of a sandbox.
type CodeContexts struct {
	Data []CodeContext `json:"data"`
}

// RunCode is the body that runs code in a context.
type RunCode struct {
	Code      *string      `json:"code" required:"true" doc:"The code to run in the context."`
	TimeoutMS *wire.Millis `json:"timeout_ms,omitzero" minimum:"1" default:"30000" doc:"Then the code is interrupted."`
}

// CodeValue is a value in the forms there are of it.
type CodeValue struct {
	Data     map[string]jsontext.Value `json:"data" doc:"By media type: text as it is, binary forms in base64, JSON as JSON."`
	Metadata jsontext.Value            `json:"metadata" doc:"An object: dropped or shortened forms, and the program's metadata of the forms."`
	Result   bool                      `json:"result" doc:"It is the value of the last expression; the others were displayed."`
}

// CodeError is an error that code ended with.
type CodeError struct {
	Name      string   `json:"name" doc:"The kind of the error, such as ValueError."`
	Value     string   `json:"value" doc:"Error message."`
	Traceback []string `json:"traceback" doc:"The lines of the traceback, from the outermost call on."`
}

// CodeResult is what came of code.
type CodeResult struct {
	Status          string      `json:"status" enum:"ok,error,interrupted,timeout,ended" doc:"ended: the interpreter did, so that the context has to be restarted."`
	Stdout          string      `json:"stdout" doc:"Standard output. Bytes that are not UTF-8 are replaced by U+FFFD."`
	Stderr          string      `json:"stderr" doc:"Standard error. Bytes that are not UTF-8 are replaced by U+FFFD."`
	Values          []CodeValue `json:"values" doc:"Displayed values, in order, and the value of the last expression."`
	Error           *CodeError  `json:"error" doc:"Why it failed; null if it did not."`
	ExitCode        *int        `json:"exit_code" doc:"Of Bash, or of an interpreter that ended."`
	StdoutTruncated bool        `json:"stdout_truncated" doc:"Whether standard output had more than is kept."`
	StderrTruncated bool        `json:"stderr_truncated" doc:"Whether standard error had more than is kept."`
	ValuesTruncated bool        `json:"values_truncated" doc:"Whether more was displayed than is kept."`
	DurationMS      int64       `json:"duration_ms" doc:"How long it took, in milliseconds."`
	Hint            string      `json:"hint,omitzero" doc:"How to fix a failure that the network policy may have caused."`
}

// CodeEvent is a line of a streamed run. It has the field that its type names; the type "result" has
// a CodeResult without output and values.
type CodeEvent struct {
	Type   string      `json:"type" enum:"output,value,result,keepalive"`
	Stream string      `json:"stream,omitzero" enum:"stdout,stderr" doc:"Of output: the stream that it was written to."`
	Data   string      `json:"data,omitzero" doc:"Of output: the text."`
	Value  *CodeValue  `json:"value,omitzero" doc:"Of value: a displayed value, or the value of the last expression."`
	Result *CodeResult `json:"result,omitzero" doc:"Of result: the outcome of the code."`
	Code   string      `json:"error,omitzero" doc:"With message, instead of result: why the run is not known to have ended."`
	Text   string      `json:"message,omitzero" doc:"With error: a sentence for people."`
}

func contextOf(c *codecontext.Context) CodeContext {
	out := CodeContext{ID: c.ID, Language: language.ContextName(c.ID.Language()), Dir: c.Dir, Status: "idle", CreatedAt: c.Started.UTC()}
	switch {
	case c.Exit != nil:
		out.Status, out.ExitCode = "ended", &c.Exit.Code
	case c.Running:
		out.Status = "running"
	}
	return out
}

func valueOf(d *codecontext.Display) CodeValue {
	v := CodeValue{Data: d.Data, Metadata: d.Metadata, Result: d.Result}
	if v.Data == nil {
		v.Data = map[string]jsontext.Value{}
	}
	if v.Metadata == nil {
		v.Metadata = jsontext.Value("{}")
	}
	return v
}

func resultOf(r *codecontext.Result) *CodeResult {
	out := &CodeResult{
		Status: string(r.Status), Values: []CodeValue{}, ExitCode: r.ExitCode,
		StdoutTruncated: r.StdoutTruncated, StderrTruncated: r.StderrTruncated, ValuesTruncated: r.DisplaysTruncated, DurationMS: r.Took.Milliseconds(),
	}
	if r.Exit != nil {
		out.ExitCode = &r.Exit.Code
	}
	if e := r.Error; e != nil {
		out.Error = &CodeError{Name: e.Name, Value: e.Value, Traceback: append([]string{}, e.Traceback...)}
	}
	return out
}
