package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// maxSilence is how long a server may send nothing of a file.
const maxSilence = time.Minute

// runRemote runs req on a server and streams its output.
func (a *cli) runRemote(ctx context.Context, server endpoint, req execution.Request) error {
	c := sdk.New(server.url, server.key)
	id := ""
	for ev, err := range c.StreamExecution(ctx, remoteRequest(req)) {
		if err != nil {
			return cancelRemote(ctx, c, id, err)
		}
		switch {
		case ev.Type == "status":
			id = ev.TraceID
		case ev.Type == "output":
			w := a.std.out
			if ev.Stream == string(execution.Stderr) {
				w = a.std.err
			}
			_, _ = io.WriteString(w, ev.Data) // a closed pipe does not stop the program
		case ev.Type == "result" && ev.Result != nil:
			if ev.OutputTruncated {
				fmt.Fprintln(a.std.err, "atoll: some output was dropped: it came faster than it was read")
			}
			if err := a.fetchFiles(ctx, c, id, ev.Result); err != nil {
				return &exit{exitNotRun, err}
			}
			missing := a.leftOut(req.Outputs, filePaths(ev.Result), ev.Result.FilesTruncated)
			if ev.Result.Hint != "" {
				fmt.Fprintf(a.std.err, "atoll: %s\n", ev.Result.Hint)
			}
			return cmp.Or(ended(execution.Status(ev.Status), int(ev.Result.ExitCode), text(ev.Result.Error)), missing)
		}
	}
	return errors.New("the server's stream ended without a result")
}

// remoteRequest is req as a server is asked.
func remoteRequest(req execution.Request) sdk.ExecuteRequest {
	in := sdk.ExecuteRequest{Code: req.Code, EnvVars: req.Env, Partial: new(true)} // progress bars move here, too
	if language := string(req.Language); language != "" {
		in.Language = &language
	}
	if seconds := int64(req.Timeout / time.Second); seconds != 0 {
		in.Timeout = &seconds
	}
	in.Args, in.Outputs = orNil(req.Args), orNil(req.Outputs)
	if len(req.Stdin) > 0 {
		in.StdinBase64 = new(base64.StdEncoding.EncodeToString(req.Stdin))
	}
	for name, data := range req.Files {
		if in.FilesBase64 == nil {
			in.FilesBase64 = map[string]string{}
		}
		in.FilesBase64[name] = base64.StdEncoding.EncodeToString(data)
	}
	return in
}

func orNil(list []string) *[]string {
	if len(list) == 0 {
		return nil
	}
	return &list
}

// fetchFiles brings the files that a program gave back.
func (a *cli) fetchFiles(ctx context.Context, c *sdk.Client, traceID string, r *sdk.ExecuteResponse) error {
	if r.Files == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("the server sent nothing for %s", maxSilence)) })
	defer watchdog.Stop()
	for _, f := range *r.Files {
		in, out := io.Pipe()
		go func() {
			out.CloseWithError(c.ExecutionFile(ctx, traceID, f.Path, notified{out, func() { watchdog.Reset(maxSilence) }}))
		}()
		err := bringBack(f.Path, in)
		in.CloseWithError(err)
		if err != nil {
			return err
		}
	}
	return nil
}

// filePaths are the files that a program gave back.
func filePaths(r *sdk.ExecuteResponse) (paths []string) {
	for _, f := range *or(r.Files, nil) {
		paths = append(paths, f.Path)
	}
	return paths
}

// notified is a writer that calls heard with each write.
type notified struct {
	io.Writer
	heard func()
}

func (n notified) Write(p []byte) (int, error) {
	n.heard()
	return n.Writer.Write(p)
}

// cancelRemote says whether the server ended a program whose output is not followed any
// more because this command was interrupted.
func cancelRemote(ctx context.Context, c *sdk.Client, traceID string, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case traceID == "":
		return &exit{exitCancelled, errors.New("cancelled; if the program has started, the server stops it")}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = c.CancelExecution(ctx, traceID)
	if refused, ok := errors.AsType[*sdk.Error](err); err == nil || ok && refused.Status == http.StatusConflict { // it had ended
		return &exit{exitCancelled, errors.New("cancelled")}
	}
	return &exit{exitCancelled, fmt.Errorf("cancelled; could not tell the server, where the program may run until it ends or times out: %w", err)}
}
