package atoll

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Executions lists the newest executions of the key's tenant that query
// selects.
func (c *Client) Executions(query url.Values) *Pager[ExecutionSummary] {
	return &Pager[ExecutionSummary]{c: c, path: "/v1/executions", query: query}
}

// Execution returns an execution with its output.
func (c *Client) Execution(ctx context.Context, traceID string) (Execution, error) {
	return call[Execution](ctx, c, http.MethodGet, under("/v1/executions", traceID), nil, nil)
}

// CancelExecution cancels a running execution.
func (c *Client) CancelExecution(ctx context.Context, traceID string) (Execution, error) {
	return call[Execution](ctx, c, http.MethodPost, under("/v1/executions", traceID, "cancel"), nil, nil)
}

// DeleteExecution deletes an ended execution with its output and files.
func (c *Client) DeleteExecution(ctx context.Context, traceID string) error {
	return c.do(ctx, http.MethodDelete, under("/v1/executions", traceID), nil)
}

// Output writes a complete stream of an execution, "stdout" or "stderr", to w.
func (c *Client) Output(ctx context.Context, traceID, stream string, w io.Writer) error {
	return c.download(ctx, w, under("/v1/executions", traceID, "output"), url.Values{"stream": {stream}})
}

// ExecutionFile writes an output file of an execution to w.
func (c *Client) ExecutionFile(ctx context.Context, traceID, path string, w io.Writer) error {
	return c.download(ctx, w, under("/v1/executions", traceID, "file"), url.Values{"path": {path}})
}

// OpenExecutionFile returns a reader of an output file of an execution.
func (c *Client) OpenExecutionFile(ctx context.Context, traceID, path string) (io.ReadCloser, error) {
	return c.open(ctx, under("/v1/executions", traceID, "file"), url.Values{"path": {path}})
}
