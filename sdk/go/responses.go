package atoll

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

const responsesPath = "/v1/responses"

// CreateResponse asks a model and returns the response when it has ended, or immediately with
// Background.
func (c *Client) CreateResponse(ctx context.Context, in CreateResponse) (Response, error) {
	stream := false
	in.Stream = &stream
	return perform[Response](ctx, c, responsesPath, nil, in)
}

// ResponseStreamed is an event of a response.
type ResponseStreamed struct {
	ResponseEvent
	Raw json.RawMessage `json:"-"` // as the server sent it
}

// StreamResponse asks a model and yields the events of its response as they happen. The last event
// has the ended response. If ctx ends first, StreamResponse cancels the response. If the caller
// leaves the loop or the connection breaks, Atoll cancels it unless it runs in the background.
func (c *Client) StreamResponse(ctx context.Context, in CreateResponse) iter.Seq2[ResponseStreamed, error] {
	stream := true
	in.Stream = &stream
	id := ""
	s := responseSource(&request{method: http.MethodPost, path: responsesPath, in: in, accept: mediaEvents})
	s.hidden = func(ev *ResponseStreamed) bool {
		if ev.Response != nil {
			id = ev.Response.ID
		}
		return ev.Type == keepalive
	}
	if in.Background != nil && *in.Background {
		s.again = func(last *ResponseStreamed) *request {
			if last == nil {
				return nil // it may have begun or not
			}
			return followedResponse(id, last.SequenceNumber)
		}
	}
	s.abandon = func(ctx context.Context, c *Client, _ string, _ *ResponseStreamed) {
		if id != "" {
			_, _ = c.CancelResponse(ctx, id) // it may have ended by now
		}
	}
	return events(ctx, c, s)
}

// Response returns the current state of a response.
func (c *Client) Response(ctx context.Context, id string) (Response, error) {
	return call[Response](ctx, c, http.MethodGet, under(responsesPath, id), nil, nil)
}

// FollowResponse yields the events of a response after a sequence number until the response ends;
// -1 yields all events.
func (c *Client) FollowResponse(ctx context.Context, id string, after int64) iter.Seq2[ResponseStreamed, error] {
	s := responseSource(followedResponse(id, after))
	s.again = func(last *ResponseStreamed) *request {
		if last == nil {
			return followedResponse(id, after)
		}
		return followedResponse(id, last.SequenceNumber)
	}
	return events(ctx, c, s)
}

func followedResponse(id string, after int64) *request {
	query := url.Values{"stream": {"true"}}
	if after >= 0 {
		query.Set("starting_after", strconv.FormatInt(after, 10))
	}
	return &request{method: http.MethodGet, path: under(responsesPath, id), query: query, accept: mediaEvents}
}

func responseSource(first *request) source[ResponseStreamed] {
	return source[ResponseStreamed]{
		first:  first,
		mute:   true,
		hidden: func(ev *ResponseStreamed) bool { return ev.Type == keepalive },
		raw:    func(ev *ResponseStreamed, data []byte) { ev.Raw = append(ev.Raw, data...) },
		ends: func(ev *ResponseStreamed) bool {
			switch ev.Type {
			case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
				return true
			}
			return false
		},
	}
}

// CancelResponse cancels a running response.
func (c *Client) CancelResponse(ctx context.Context, id string) (Response, error) {
	return call[Response](ctx, c, http.MethodPost, under(responsesPath, id, "cancel"), nil, nil)
}

// DeleteResponse deletes an ended response.
func (c *Client) DeleteResponse(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, under(responsesPath, id), nil)
}

// ResponseInputs lists the input items of a response. query has order, asc or desc.
func (c *Client) ResponseInputs(id string, query url.Values) *Pager[ResponseItem] {
	return &Pager[ResponseItem]{c: c, path: under(responsesPath, id, "input_items"), query: query, cursor: "after"}
}

// ResponseFiles lists the files that the model of a response shared.
func (c *Client) ResponseFiles(id string) *Pager[ResponseFile] {
	return &Pager[ResponseFile]{c: c, path: under(responsesPath, id, "files")}
}

// ResponseFile streams the contents of a file of a response to w.
func (c *Client) ResponseFile(ctx context.Context, id, file string, w io.Writer) error {
	return c.download(ctx, w, under(responsesPath, id, "files", file, "content"), nil)
}
