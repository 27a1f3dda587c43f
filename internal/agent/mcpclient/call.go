package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
)

// CallTime bounds a call, and maxResult the bytes that are kept of its result.
const (
	CallTime  = 2 * time.Minute
	maxResult = 1 << 20
)

// Result is what a call came to.
type Result struct {
	Text    string
	Failed  bool // the tool says so
	Changed bool // the server has said that it has other tools now
	// Texts are the parts of Text by themselves, and Structured is JSON for programs; "" for
	// none.
	Texts      []string
	Structured string
	Images     []Image
}

// Image is a picture of a result.
type Image struct {
	MediaType string
	Data      []byte
}

// Bounds of the pictures of a result. Others are named in its text alone.
const (
	maxImages     = 4
	maxImageBytes = 2 << 20 // of all
)

// imageTypes are those that models take.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// image adds a picture if it is one, as its bytes say, and there is room for it.
func (r *Result) image(mediaType string, data []byte) bool {
	size := len(data)
	for _, is := range r.Images {
		size += len(is.Data)
	}
	if !slices.Contains(imageTypes, mediaType) || http.DetectContentType(data) != mediaType || len(r.Images) == maxImages || size > maxImageBytes {
		return false
	}
	r.Images = append(r.Images, Image{mediaType, data})
	return true
}

// ErrUnknown is in the chain of errors that leave open whether a call was done.
var ErrUnknown = errors.New("it is not known whether the call was done")

// Call calls a tool in the session of a name. An error is Unavailable; ErrUnknown is in its
// chain unless the call was certainly not done. A session that the server has lost is made
// anew, once.
func (c *Client) Call(ctx context.Context, name string, t Target, tool *run.RemoteTool, arguments json.RawMessage) (*Result, error) {
	for again := true; ; again = false {
		r, lost, err := c.call(ctx, name, t, tool, arguments)
		if !lost || !again {
			return r, err
		}
	}
}

func (c *Client) call(ctx context.Context, name string, t Target, tool *run.RemoteTool, arguments json.RawMessage) (r *Result, lost bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, CallTime, errSlow)
	defer cancel()
	s, err := c.open(ctx, name, t)
	if err != nil {
		return nil, false, err
	}
	keep := false
	defer func() { c.release(s, keep) }()
	ctx, seen := watch(ctx)
	if bytes.Contains(tool.Schema, []byte(`"x-mcp-header"`)) { // the SDK makes headers of such arguments where it knows the tool
		s.listed.Do(func() {
			for _, err = range s.mcp.Tools(ctx, nil) {
				if err != nil || seen.requests.Load() > maxPages {
					break
				}
			}
		})
		if err != nil {
			return nil, false, s.peer.failure(ctx, err, seen)
		}
	}
	out, err := s.mcp.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: arguments})
	if err != nil {
		lost, known := s.outcome(err, seen)
		failure := s.peer.failure(ctx, err, seen)
		if answered(err) != nil {
			keep = true
			if !lost && unknownTool(err) {
				s.peer.changed.Store(true)
			}
		}
		if f, ok := errors.AsType[*fault.Error](failure); ok && !known {
			unknown := *f // others may have f
			unknown.Err = ErrUnknown
			failure = &unknown
		}
		return &Result{Changed: s.peer.changed.Load()}, lost, failure
	}
	keep = true
	r = s.read(out)
	r.Changed = s.peer.changed.Swap(false)
	return r, false, nil
}

// outcome says of a call that failed whether its session is lost, so that it was not done
// and may be tried in another one, and whether it is known that it was not done.
func (s *session) outcome(err error, seen *seen) (lost, known bool) {
	if s.peer.target.Command != nil { // one that ended before it was asked is started again
		lost = !seen.sent.Load()
		return lost, lost || answered(err) != nil
	}
	status := seen.first.Load()
	lost = status == http.StatusNotFound && s.mcp.ID() != ""
	return lost, lost || answered(err) != nil || !seen.sent.Load() || status >= 400 && status <= 499 || status == 0 && seen.status.Load() >= 300
}

// unknownTool reports whether a server says that it has no such tool.
func unknownTool(err error) bool {
	e := answered(err)
	return e != nil && (e.Code == jsonrpc.CodeMethodNotFound || e.Code == jsonrpc.CodeInvalidParams && strings.Contains(strings.ToLower(e.Message), "tool"))
}

// structured is structured content as JSON, without secrets in names and texts, however JSON
// writes them.
func structured(content any, cover *strings.Replacer) (string, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	var value any
	read := json.NewDecoder(bytes.NewReader(raw))
	read.UseNumber()
	if err := read.Decode(&value); err != nil {
		return "", err
	}
	raw, err = json.Marshal(covered(value, cover))
	return cover.Replace(string(raw)), err
}

func covered(value any, cover *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return cover.Replace(value)
	case []any:
		for i := range value {
			value[i] = covered(value[i], cover)
		}
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, one := range value {
			out[cover.Replace(name)] = covered(one, cover)
		}
		return out
	}
	return value
}

// read is a result as text, without the target's secrets.
func (s *session) read(r *mcp.CallToolResult) *Result {
	out := &Result{Failed: r.IsError}
	cover := s.peer.target.cover()
	add := func(format string, args ...any) {
		text := strings.ReplaceAll(cover.Replace(fmt.Sprintf(format, args...)), "\x00", "")
		out.Texts = append(out.Texts, strings.ToValidUTF8(text, "\uFFFD"))
	}
	for _, part := range r.Content {
		switch part := part.(type) {
		case *mcp.TextContent:
			add("%s", part.Text)
		case *mcp.ImageContent:
			what := "[an image of type %s, %d bytes]"
			if !out.image(part.MIMEType, part.Data) {
				what = "[an image of type %s, %d bytes, which is not shown]"
			}
			add(what, web.Line(part.MIMEType, 100), len(part.Data))
		case *mcp.AudioContent:
			add("[sound of type %s, %d bytes]", web.Line(part.MIMEType, 100), len(part.Data))
		case *mcp.ResourceLink:
			add("[%s: %s]", web.Line(part.Name, maxName), web.Line(part.URI, maxURL))
		case *mcp.EmbeddedResource:
			switch {
			case part.Resource == nil:
			case part.Resource.Text != "":
				add("%s", part.Resource.Text)
			default:
				add("[%s, %d bytes]", web.Line(part.Resource.URI, maxURL), len(part.Resource.Blob))
			}
		}
	}
	if r.StructuredContent != nil {
		if raw, err := structured(r.StructuredContent, cover); err == nil {
			out.Structured = strings.ToValidUTF8(raw, "\uFFFD")
		}
	}
	if out.Text = strings.Join(out.Texts, "\n"); out.Text == "" {
		out.Text = out.Structured
	}
	if len(out.Text) > maxResult {
		out.Text = strings.ToValidUTF8(out.Text[:maxResult], "") + "\n[the rest is cut]"
	}
	return out
}
