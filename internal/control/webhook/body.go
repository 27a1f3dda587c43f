package webhook

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// message is what a receiver gets.
type message struct {
	Event           string `json:"event"` // execution.completed or execution.cancelled
	TraceID         string `json:"trace_id"`
	Timestamp       string `json:"timestamp"` // when the execution ended, the same at every attempt
	Result          result `json:"result"`
	OutputTruncated bool   `json:"output_truncated"`
}

type result struct {
	Success         bool    `json:"success"`
	Stdout          string  `json:"stdout"`
	Stderr          string  `json:"stderr"`
	ExitCode        int     `json:"exit_code"`
	DurationMS      int64   `json:"duration_ms"`
	Error           *string `json:"error"`
	StdoutTruncated bool    `json:"stdout_truncated"`
	StderrTruncated bool    `json:"stderr_truncated"`
}

func (c *Client) body(ctx context.Context, e *execution.Execution) ([]byte, error) {
	stdout, err := c.output(ctx, e, execution.Stdout, e.Stdout)
	if err != nil {
		return nil, err
	}
	stderr, err := c.output(ctx, e, execution.Stderr, e.Stderr)
	if err != nil {
		return nil, err
	}
	m := message{
		Event: "execution.completed", TraceID: e.TraceID, OutputTruncated: e.OutputTruncated,
		Timestamp: e.CompletedAt.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano),
		Result: result{
			Success: e.Status == execution.Success, ExitCode: e.ExitCode, DurationMS: e.Duration().Milliseconds(),
			Stdout: string(stdout), Stderr: string(stderr),
			StdoutTruncated: e.StdoutTruncated, StderrTruncated: e.StderrTruncated,
		},
	}
	if e.Status == execution.Cancelled {
		m.Event = "execution.cancelled"
	}
	if e.Error != "" {
		m.Result.Error = &e.Error
	}
	return json.Marshal(m, jsontext.AllowInvalidUTF8(true))
}

// output returns a stream as an inline answer would have it.
func (c *Client) output(ctx context.Context, e *execution.Execution, s execution.Stream, recorded []byte) ([]byte, error) {
	if !e.Stored {
		return recorded, nil
	}
	blob, err := c.cfg.Open(ctx, execution.OutputName(e.Tenant, e.TraceID, s))
	if err != nil {
		return nil, fmt.Errorf("open stored %s: %w", s, err)
	}
	defer blob.Close()
	b, err := io.ReadAll(io.LimitReader(blob, c.cfg.MaxOutput))
	if err != nil {
		return nil, fmt.Errorf("read stored %s: %w", s, err)
	}
	return b, nil
}
