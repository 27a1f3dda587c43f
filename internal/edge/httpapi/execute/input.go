package execute

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/wire"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Input is the part of an ExecuteRequest that is beyond the original contract: what a
// program is given besides its code and variables, and what it gives back.
type Input struct {
	Args        []wire.Text          `json:"args,omitzero" nullable:"true" maxItems:"256" doc:"Arguments of the program: sys.argv[1:], process.argv.slice(2), $1 and so on. At most 64 KiB together. Not in the original contract."`
	Stdin       *wire.Text           `json:"stdin,omitzero" nullable:"true" doc:"Standard input of the program; empty if omitted. Not in the original contract."`
	StdinBase64 *wire.Text           `json:"stdin_base64,omitzero" nullable:"true" doc:"Instead of stdin: any bytes, in base64. Not in the original contract."`
	Files       map[string]wire.Text `json:"files,omitzero" nullable:"true" doc:"Files that are put into the working folder before the program starts: text by name, such as data/in.csv. At most 100 files with files_base64, and 4 MiB with stdin. Not in the original contract."`
	FilesBase64 map[string]wire.Text `json:"files_base64,omitzero" nullable:"true" doc:"Like files, with the contents in base64. Not in the original contract."`
	Outputs     []wire.Text          `json:"outputs,omitzero" nullable:"true" maxItems:"20" doc:"Files and folders of the working folder that are kept when the program has ended: see files of the answer. A path that ends with a slash is a folder that is made before the program starts. At most 100 files and 32 MiB are kept. Not in the original contract."`
}

// input gives the domain's form.
func (in *Input) input() (out execution.Input, err error) {
	out.Args, out.Outputs = wire.Strings(in.Args), wire.Strings(in.Outputs)
	switch {
	case in.Stdin != nil && in.StdinBase64 != nil:
		return out, httpapi.Invalid("stdin and stdin_base64 must not be given together")
	case in.Stdin != nil:
		out.Stdin = []byte(*in.Stdin)
	case in.StdinBase64 != nil:
		if out.Stdin, err = base64.StdEncoding.DecodeString(string(*in.StdinBase64)); err != nil {
			return out, httpapi.Invalid("stdin_base64 must be base64")
		}
	}
	if len(in.Files)+len(in.FilesBase64) > 0 {
		out.Files = make(map[string][]byte, len(in.Files)+len(in.FilesBase64))
	}
	for name, text := range in.Files {
		out.Files[name] = []byte(text)
	}
	for _, name := range slices.Sorted(maps.Keys(in.FilesBase64)) {
		if _, twice := out.Files[name]; twice {
			return out, httpapi.Invalid("files and files_base64 must not both have %s", wire.Quote(name))
		}
		if out.Files[name], err = base64.StdEncoding.DecodeString(string(in.FilesBase64[name])); err != nil {
			return out, httpapi.Invalid("files_base64 must have base64 as the contents of %s", wire.Quote(name))
		}
	}
	return out, nil
}

// OutputFile is a file that a program gave back.
type OutputFile struct {
	Path string `json:"path" doc:"Relative to the working folder. The contents are at GET /v1/executions/{trace_id}/file?path="`
	Size int64  `json:"size" doc:"Bytes."`
}

// OutputFiles are the files that a program gave back.
type OutputFiles struct {
	Files          []OutputFile `json:"files,omitzero" nullable:"false" doc:"Files that the program gave back; omitted without outputs in the request. Not in the original contract."`
	FilesTruncated bool         `json:"files_truncated,omitzero" doc:"True if there were more or larger files than are kept. Not in the original contract."`
}

func filesOf(e *execution.Execution) (out OutputFiles) {
	for _, f := range e.Files.Files {
		out.Files = append(out.Files, OutputFile{Path: f.Name, Size: f.Bytes})
	}
	out.FilesTruncated = e.Files.Truncated
	return out
}

// file sends a file that an execution gave back.
func (h *Handlers) file(c *httpapi.Call) error {
	id, err := traceIDOf(c)
	if err != nil {
		return err
	}
	e, err := h.Gateway.Get(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return hidden(err, id)
	}
	if e.Status == execution.Running {
		return fault.New(fault.Conflict, "the execution is still running: its files are there when it has ended")
	}
	name := c.Text("path")
	body, err := h.Gateway.File(c.Context(), e, name)
	if err != nil {
		return err
	}
	defer body.Close()
	return c.ServeFile(path.Base(name), time.Time{}, body)
}
