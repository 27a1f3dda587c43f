package response

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func (h *Handlers) get(c *httpapi.Call) error {
	r, err := h.find(c)
	if err != nil {
		return err
	}
	if !c.Bool("stream") {
		if c.Has("starting_after") {
			return invalid("starting_after has a meaning with stream=true only")
		}
		return h.answer(c, r.ID)
	}
	after := int64(-1)
	if c.Has("starting_after") {
		after = c.Int("starting_after")
	}
	end, err := c.OpenStream()
	if err != nil {
		return err
	}
	defer end()
	return h.stream(c, r.ID, after)
}

// stream sends the events of a run after a sequence number.
func (h *Handlers) stream(c *httpapi.Call, id run.ID, after int64) error {
	ctx, stop := c.Living(c.Context())
	defer stop()
	first, err := h.Service.Begun(ctx, id)
	if err != nil {
		return err
	}
	if !first.Request.Publish {
		return invalid("this response has no events: it was made neither with stream nor in the background")
	}
	set, err := response.SettingsOf(first)
	if err != nil {
		return err
	}
	out := &sse{w: c.W, conn: http.NewResponseController(c.W), after: after}
	s := &stream{
		renderer: h.renderer(c), set: set, state: first, emit: out.event,
		full: func() (*run.State, error) { return h.Service.State(ctx, id) },
	}
	c.W.Header().Set("X-Accel-Buffering", "no") // proxies that know it pass lines on at once
	c.Start(httpapi.EventStream)
	if err = s.begin(); err == nil {
		err = out.flush()
	}
	if err == nil {
		err = h.Service.Follow(ctx, c.Caller.Tenant.ID, id, func(events []run.Event) error {
			for i := range events {
				if err := s.event(&events[i]); err != nil {
					return err
				}
			}
			return out.flush()
		})
	}
	if err != nil {
		c.Log().DebugContext(ctx, "stream ended early", "response", response.ID(id), "error", err)
		panic(http.ErrAbortHandler) // half a stream must not look like a whole one
	}
	return nil
}

// maxBuffer bounds what a stream keeps for its next events.
const maxBuffer = 16 << 10

// sse sends events to one client.
type sse struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	after int64 // the client has this event and those before it
	buf   []byte
}

func (o *sse) event(e *ResponseEvent) error {
	if e.Sequence <= o.after {
		return nil
	}
	o.buf = append(append(append(o.buf, "event: "...), e.Type...), "\ndata: "...)
	if e.Type == outputDelta {
		o.buf = appendOutputDelta(o.buf, e)
	} else {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		o.buf = append(o.buf, data...)
	}
	o.buf = append(o.buf, "\n\n"...)
	return nil
}

// outputDelta is the event that there are thousands of a second.
const outputDelta = "response.output_text.delta"

// appendOutputDelta is json.Marshal of an outputDelta.
func appendOutputDelta(b []byte, e *ResponseEvent) []byte {
	b = strconv.AppendInt(append(b, `{"type":"`+outputDelta+`","sequence_number":`...), e.Sequence, 10)
	b = append(append(append(b, `,"item_id":"`...), e.ItemID...), '"') // letters, digits and _
	b = strconv.AppendInt(append(b, `,"output_index":`...), int64(*e.OutputIndex), 10)
	b = strconv.AppendInt(append(b, `,"content_index":`...), int64(*e.ContentIndex), 10)
	b, _ = jsontext.AppendQuote(append(b, `,"delta":`...), *e.Delta) // replaces what is not UTF-8
	return append(b, `,"logprobs":[]}`...)
}

func (o *sse) flush() error {
	if len(o.buf) == 0 {
		return nil
	}
	_, err := o.w.Write(o.buf)
	if o.buf = o.buf[:0]; cap(o.buf) > maxBuffer {
		o.buf = nil
	}
	if err == nil {
		err = o.conn.Flush()
	}
	return err
}

// cancel answers 400 for a response that has ended, as clients expect it: they try again
// after a 409.
func (h *Handlers) cancel(c *httpapi.Call) (*CancelledResponse, error) {
	r, err := h.find(c)
	if err != nil {
		return nil, err
	}
	if err := h.Service.Cancel(c.Context(), r); err != nil {
		return nil, err
	}
	out, err := h.response(c, r.ID)
	if err != nil {
		return nil, err
	}
	return &CancelledResponse{Response: *out, ResponseID: out.ID}, nil
}

// DeletedResponse says that a response was deleted.
type DeletedResponse struct {
	ID      string `json:"id" required:"true"`
	Object  string `json:"object" required:"true" enum:"response.deleted"`
	Deleted bool   `json:"deleted" required:"true" doc:"Always true."`
}

func (h *Handlers) delete(c *httpapi.Call) (*DeletedResponse, error) {
	r, err := h.find(c)
	if err != nil {
		return nil, err
	}
	if err := h.Service.Delete(c.Context(), r); err != nil {
		return nil, err
	}
	return &DeletedResponse{ID: response.ID(r.ID), Object: "response.deleted", Deleted: true}, nil
}

// ResponseInput is a page of the input of a response.
type ResponseInput struct {
	Object  string         `json:"object" required:"true" enum:"list"`
	Data    []ResponseItem `json:"data" required:"true"`
	FirstID *string        `json:"first_id" required:"true" nullable:"true" doc:"The id of the first item of this page; null if it is empty."`
	LastID  *string        `json:"last_id" required:"true" nullable:"true" doc:"The id of the last item of this page; null if it is empty."`
	HasMore bool           `json:"has_more" required:"true" doc:"Whether another page follows; give last_id as after to get it."`
}

func (h *Handlers) inputItems(c *httpapi.Call) (*ResponseInput, error) {
	asked, err := h.Service.Asked(c.Context(), c.Caller.Tenant.ID, c.Path("response_id"))
	if err != nil {
		return nil, err
	}
	of := string(asked.Run[len("run_"):])
	all := make([]ResponseItem, 0, len(asked.Input)+len(asked.Settings.Approvals))
	for i := range asked.Input {
		it := &asked.Input[i]
		all = append(all, h.renderer(c).input(it, fmt.Sprintf("%sin%04x", of, i), asked.Custom(it)))
	}
	for i, a := range asked.Settings.Approvals {
		all = append(all, showDecision(a, of, i))
	}
	if c.Text("order") != "asc" {
		slices.Reverse(all)
	}
	page := &ResponseInput{Object: "list"}
	if page.Data, page.HasMore, err = httpapi.After(all, c.Text("after"), int(c.Int("limit")), func(it *ResponseItem) string { return it.ID }, "item of this response"); err != nil {
		return nil, err
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	return page, nil
}

// input renders an item of a request for clients. custom marks the result of a custom call.
func (v *renderer) input(it *model.Item, name string, custom bool) ResponseItem {
	switch {
	case it.Message != nil:
		parts := partsOf(it.Message.Parts, it.Message.Role)
		return ResponseItem{Type: "message", ID: "msg_" + name, Status: "completed", Role: string(it.Message.Role), Content: &ResponseContent{Parts: parts}}
	case it.Call != nil:
		out := ResponseItem{ID: "fc_" + name, Status: "completed"}
		if it.Call.Custom {
			out.ID = "ctc_" + name
		}
		showCall(&out, it.Call)
		return out
	case it.Result != nil:
		output, _ := json.Marshal(partsOf(it.Result.Parts, model.User)) // of text and bytes: never fails
		if custom {
			return ResponseItem{Type: response.CustomOutput, ID: "ctco_" + name, Status: "completed", CallID: it.Result.CallID, Output: output}
		}
		return ResponseItem{Type: "function_call_output", ID: "fco_" + name, Status: "completed", CallID: it.Result.CallID, Output: output}
	}
	out := ResponseItem{ID: "rs_" + name, Status: "completed"}
	_ = v.reasoning(&out, it.Reasoning, &response.Settings{}) // without its state: never fails
	return out
}
