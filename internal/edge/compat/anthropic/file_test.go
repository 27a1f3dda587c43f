package anthropic

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/upload"
)

// TestFilesOfRequest: a short request does not make the server read files without a bound.
func TestFilesOfRequest(t *testing.T) {
	reads := 0
	var each contents = func(string, string) (*upload.File, []byte, error) {
		reads++
		return &upload.File{Name: "a.csv", MediaType: "text/csv"}, make([]byte, 1<<19), nil
	}
	const message = `{"type":"user.message","content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}`
	request := func(n int) error {
		var events []jsontext.Value
		for range n {
			events = append(events, jsontext.Value(message))
		}
		_, err := each.within(3<<19).batch(events, "events", taken, 1)
		return err
	}
	if err := request(3); err != nil {
		t.Error(err)
	}
	reads = 0
	if err := request(maxEvents); err == nil || !strings.Contains(err.Error(), "events[3].content[0].source.file_id") || reads != 4 {
		t.Errorf("%v, after %d files", err, reads)
	}
}
