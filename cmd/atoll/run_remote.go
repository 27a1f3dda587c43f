package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// silence is how long a server may send nothing; its keepalives come every 15
// seconds.
const silence = time.Minute

// runRemote runs req on a server and streams its output.
func (a *cli) runRemote(ctx context.Context, server endpoint, req execution.Request) error {
	if server.key == "" {
		return errors.New("ATOLL_API_KEY is not set: it is the key for the server at " + server.url)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the server has sent nothing for %s", silence)) })
	defer watchdog.Stop()

	res, err := server.stream(ctx, req)
	if err != nil {
		return remoteEnd(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	traceID := res.Header.Get("X-Trace-Id")
	in := json.NewDecoder(bufio.NewReader(res.Body))
	for {
		var ev sdk.Event
		if err := in.Decode(&ev); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return server.abandon(ctx, traceID, fmt.Errorf("the server's stream ended before the result: %w", err))
		}
		watchdog.Reset(silence)
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
			reason := ""
			if ev.Result.Error != nil {
				reason = *ev.Result.Error
			}
			return ended(execution.Status(ev.Status), int(ev.Result.ExitCode), reason)
		}
	}
}

// stream sends req and asks for NDJSON.
func (e endpoint) stream(ctx context.Context, req execution.Request) (*http.Response, error) {
	body := map[string]any{"code": req.Code, "env_vars": req.Env}
	if req.Language != "" {
		body["language"] = req.Language
	}
	if req.Timeout != 0 {
		body["timeout"] = int64(req.Timeout.Seconds())
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.url, "/")+"/v1/sandbox/execute", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + e.key}, "Content-Type": {"application/json"}, "Accept": {"application/x-ndjson"}}
	return http.DefaultClient.Do(r)
}

// refusal is the error of an answer that is not a stream.
func refusal(res *http.Response) error {
	var body sdk.ErrorResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&body); err != nil || body.Message == "" {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	return fmt.Errorf("%s (%s, %s)", body.Message, res.Status, res.Header.Get("X-Trace-Id"))
}

// abandon has the server end a run that was interrupted here.
func (e endpoint) abandon(ctx context.Context, traceID string, err error) error {
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		return remoteEnd(ctx, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.url, "/")+"/v1/executions/"+traceID+"/cancel", nil)
	if err != nil {
		return err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + e.key}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return &exit{exitCancelled, fmt.Errorf("cancelled here; on the server the program may run on until it ends or times out: %w", err)}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusConflict { // it had ended
		return &exit{exitCancelled, fmt.Errorf("cancelled here; on the server the program may run on until it ends or times out: %w", refusal(res))}
	}
	return &exit{exitCancelled, errors.New("cancelled")}
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
