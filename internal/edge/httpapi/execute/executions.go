package execute

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// traceIDPattern has the ids of now, and of records of older versions.
var traceIDPattern = regexp.MustCompile(`^trc_([a-z2-7]{20}|[0-9a-f]{32})$`)

const (
	// threadIDPattern is what execution.CheckThread checks.
	threadIDPattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"
	// metadataPrefix begins the query parameters that filter by metadata.
	metadataPrefix = "metadata."
	lastEventID    = "Last-Event-ID"
	maxSeq         = math.MaxInt64 - 1
)

// traceIDOf returns the trace id in a request's path. An invalid id gets the
// same answer as an unused one.
func traceIDOf(c *httpapi.Call) (string, error) {
	id := c.Path("trace_id")
	if !traceIDPattern.MatchString(id) {
		return "", errUnknown(id)
	}
	return id, nil
}

func errUnknown(id string) error { return fault.New(fault.NotFound, "execution %.80q not found", id) }

// hidden gives the same answer for every execution that a caller cannot see.
func hidden(err error, id string) error {
	if fault.KindOf(err) == fault.NotFound {
		return errUnknown(id)
	}
	return err
}

func (h *Handlers) get(c *httpapi.Call) error {
	id, err := traceIDOf(c)
	if err != nil {
		return err
	}
	e, err := h.Gateway.GetOutput(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return hidden(err, id)
	}
	return h.send(c.Context(), c, e)
}

// send answers with e and, once it has ended, its output.
func (h *Handlers) send(ctx context.Context, c *httpapi.Call, e *execution.Execution) error {
	body := Execution{ExecutionSummary: summarize(e, takesCodes(c))}
	if e.Status == execution.Running {
		return httpapi.WriteJSON(c.W, http.StatusOK, body)
	}
	out, err := h.openOutputs(ctx, e)
	if err != nil {
		return err
	}
	defer out.Close()
	body.note(e, out)
	httpapi.StartJSON(c.W, http.StatusOK)
	return out.write(c.W, body)
}

func (h *Handlers) cancel(c *httpapi.Call) error {
	id, err := traceIDOf(c)
	if err != nil {
		return err
	}
	e, err := h.Gateway.Cancel(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return hidden(err, id)
	}
	return h.send(c.Context(), c, e)
}

func (h *Handlers) delete(c *httpapi.Call) error {
	id, err := traceIDOf(c)
	if err != nil {
		return err
	}
	return hidden(h.Gateway.Delete(c.Context(), c.Caller.Tenant.ID, id), id)
}

// Redelivery answers a request to deliver a webhook again.
type Redelivery struct {
	TraceID string `json:"trace_id" doc:"Names the request or execution in records and logs."`
	Status  string `json:"webhook_delivery_status" enum:"pending" doc:"The state of the delivery."`
}

// redeliver delivers the webhook of an execution of the tenant in the path.
func (h *Handlers) redeliver(c *httpapi.Call) (out Redelivery, err error) {
	t, err := c.Tenant(h.Tenants.Tenant)
	if err != nil {
		return out, err
	}
	id, err := traceIDOf(c)
	if err != nil {
		return out, err
	}
	e, err := h.Gateway.Get(c.Context(), t.ID, id)
	if err != nil {
		return out, hidden(err, id)
	}
	return Redelivery{id, string(execution.WebhookPending)}, h.Webhooks.Redeliver(c.Context(), e)
}

// output replays an execution's output and follows it, or sends one of its streams whole.
func (h *Handlers) output(c *httpapi.Call) error {
	id, err := traceIDOf(c)
	if err != nil {
		return err
	}
	if c.Has("stream") {
		if c.Has("after") || c.Has("after_seq") {
			return httpapi.Invalid("after goes with the stream of events, not with stream")
		}
		return h.raw(c, id, execution.Stream(c.Text("stream")))
	}
	if c.Has("after") && c.Has("after_seq") {
		return httpapi.Invalid("after and after_seq are the same: give one of them")
	}
	after, media := max(c.Int("after"), c.Int("after_seq")), httpapi.NDJSON
	if httpapi.Accepts(c.R.Header, httpapi.EventStream) {
		media = httpapi.EventStream
		if seen := c.R.Header.Get(lastEventID); seen != "" {
			if after, err = strconv.ParseInt(seen, 10, 64); err != nil || after < 0 || after > maxSeq {
				return httpapi.Invalid("%s must be an integer from 0 to %d", lastEventID, int64(maxSeq))
			}
		}
	}
	e, err := h.Gateway.Get(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return hidden(err, id)
	}
	if e.Status != execution.Running && after > max(e.LastSeq, 1) {
		// The client has it all. An EventSource takes this as the end.
		c.W.WriteHeader(http.StatusNoContent)
		return nil
	}
	if c.R.Method == http.MethodHead { // does not wait for what it will not get
		c.W.Header().Set("Content-Type", media)
		c.W.WriteHeader(http.StatusOK)
		return nil
	}
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	return h.follow(c, e, media, after, 0)
}

// raw sends a whole stream as the bytes it was kept as.
func (h *Handlers) raw(c *httpapi.Call, id string, name execution.Stream) error {
	e, err := h.Gateway.GetOutput(c.Context(), c.Caller.Tenant.ID, id)
	if err != nil {
		return hidden(err, id)
	}
	if e.Status == execution.Running {
		return fault.New(fault.Conflict, "the execution is still running: its output is whole when it has ended")
	}
	body, err := h.Gateway.Whole(c.Context(), e, name)
	if err != nil {
		return err
	}
	defer body.Close()
	return c.ServeFile(id+"-"+string(name), time.Time{}, body)
}

func (h *Handlers) list(c *httpapi.Call) (ExecutionPage, error) {
	filter, err := filterOf(c)
	if err != nil {
		return ExecutionPage{}, err
	}
	page, next, err := h.Gateway.List(c.Context(), filter)
	if err != nil {
		return ExecutionPage{}, err
	}
	coded := takesCodes(c)
	return ExecutionPage{Data: httpapi.Each(page, func(e *execution.Execution) ExecutionSummary { return summarize(e, coded) }), NextPage: httpapi.OrNull(next)}, nil
}

func filterOf(c *httpapi.Call) (f execution.Filter, err error) {
	f = execution.Filter{
		Tenant: c.Caller.Tenant.ID, Status: execution.Status(c.Text("status")), Language: execution.Language(c.Text("language")),
		Thread: c.Text("thread_id"), Key: c.Text("key"), Limit: int(c.Int("limit")),
	}
	if c.Has("thread_id") && f.Thread == "" {
		return f, httpapi.Invalid("thread_id must be the id of a thread")
	}
	if err := execution.CheckThread(f.Thread); err != nil {
		return f, err
	}
	if c.Has("key") && f.Key == "" {
		return f, httpapi.Invalid("key must be the id of a key")
	}
	if f.Cursor, err = c.Cursor(); err != nil {
		return f, err
	}
	if f.Since, f.Before, err = c.Span(); err != nil {
		return f, err
	}
	for name, values := range c.Query {
		key, ok := strings.CutPrefix(name, metadataPrefix)
		switch {
		case !ok:
		case key == "":
			return f, httpapi.Invalid("%sKEY needs a key", metadataPrefix)
		case f.Metadata == nil:
			f.Metadata = map[string]string{key: values[0]}
		default:
			f.Metadata[key] = values[0]
		}
	}
	if len(f.Metadata) > execution.MaxMetadata {
		return f, httpapi.Invalid("at most %d filters by metadata", execution.MaxMetadata)
	}
	return f, nil
}
