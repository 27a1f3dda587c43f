package main

import (
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

// maxSilence is how long a server may send nothing while a program runs; its
// keepalives come every 15 seconds.
const maxSilence = time.Minute

// runRemote runs req on a server and streams its output.
func (a *cli) runRemote(ctx context.Context, server endpoint, req execution.Request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(maxSilence, func() { cancel(fmt.Errorf("the server has sent nothing for %s", maxSilence)) })
	defer watchdog.Stop()

	c := sdk.New(server.url, server.key)
	events, err := c.ExecuteStream(ctx, remoteRequest(req))
	if err != nil {
		return remoteEnd(ctx, err)
	}
	defer events.Close()
	for {
		ev, err := events.Next()
		if err != nil {
			return cancelRemote(ctx, c, events.TraceID, err)
		}
		watchdog.Reset(maxSilence)
		switch {
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
			if err := a.fetchFiles(ctx, c, events.TraceID, ev.Result, func() { watchdog.Reset(maxSilence) }); err != nil {
				return &exit{exitNotRun, err}
			}
			if ev.Result.Hint != "" {
				fmt.Fprintf(a.std.err, "atoll: %s\n", ev.Result.Hint)
			}
			return ended(execution.Status(ev.Status), int(ev.Result.ExitCode), text(ev.Result.Error))
		}
	}
}

// remoteRequest is req as a server is asked.
func remoteRequest(req execution.Request) sdk.ExecuteRequest {
	in := sdk.ExecuteRequest{Code: req.Code, EnvVars: req.Env}
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

// fetchFiles brings the files that a program gave back; heard is called for what comes.
func (a *cli) fetchFiles(ctx context.Context, c *sdk.Client, traceID string, r *sdk.ExecuteResponse, heard func()) error {
	if r.Files == nil {
		return nil
	}
	for _, f := range *r.Files {
		in, out := io.Pipe()
		go func() { out.CloseWithError(c.ExecutionFile(ctx, traceID, f.Path, notified{out, heard})) }()
		err := bringBack(f.Path, in)
		in.CloseWithError(err)
		if err != nil {
			return err
		}
	}
	a.leftOut(r.FilesTruncated)
	return nil
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

// cancelRemote has the server end a program whose output is not followed any
// more because this command was interrupted.
func cancelRemote(ctx context.Context, c *sdk.Client, traceID string, err error) error {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return remoteEnd(ctx, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err = c.CancelExecution(ctx, traceID)
	if refused, ok := errors.AsType[*sdk.Error](err); err == nil || ok && refused.Status == http.StatusConflict { // it had ended
		return &exit{exitCancelled, errors.New("cancelled")}
	}
	return &exit{exitCancelled, fmt.Errorf("cancelled here; on the server the program may run on until it ends or times out: %w", err)}
}

// remoteEnd tells a stream that was cancelled here from one that broke.
func remoteEnd(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, context.Canceled):
		return &exit{exitCancelled, errors.New("cancelled here; on the server the program runs on until it ends or times out")}
	default:
		return cause
	}
}
