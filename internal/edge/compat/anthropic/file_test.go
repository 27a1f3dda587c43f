package anthropic

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/conversation"
	"github.com/atoll-run/atoll/internal/core/file"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// halfMiB are files of 512 KiB, of which it counts the reads.
type halfMiB struct{ reads int }

func (h *halfMiB) Get(context.Context, tenant.ID, string) (*upload.File, error) {
	return &upload.File{Name: "a.csv", MediaType: "text/csv", Size: 1 << 19}, nil
}

func (h *halfMiB) Open(context.Context, *upload.File) io.ReadSeekCloser {
	h.reads++
	return file.NewSeekable(1<<19, nil, func(int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<19))), nil
	})
}

// TestFilesOfRequest: a short request does not make the server read files without a bound.
func TestFilesOfRequest(t *testing.T) {
	const message = `{"type":"user.message","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}`
	request := func(n int) (int, error) {
		var events []jsontext.Value
		for range n {
			events = append(events, jsontext.Value(message))
		}
		files := &halfMiB{}
		_, err := contents{t.Context(), &conversation.Attachments{Files: files, Max: 3 << 19}}.batch(events, "events", taken, 1)
		return files.reads, err
	}
	if _, err := request(3); err != nil {
		t.Error(err)
	}
	if reads, err := request(maxEvents); err == nil || !strings.Contains(err.Error(), "events[3].content[0].source.file_id") || reads != 4 {
		t.Errorf("%v, after %d files", err, reads)
	}
}
