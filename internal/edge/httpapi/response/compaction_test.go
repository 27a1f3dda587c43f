package response

import (
	"testing"

	"github.com/atoll-run/atoll/internal/agent/response"
	"github.com/atoll-run/atoll/internal/core/run"
)

// TestContextManagement: a request has long conversations summarized, from a size on or when needed.
func TestContextManagement(t *testing.T) {
	for name, c := range map[string]struct {
		in   []ContextManagement
		want *run.Compact
	}{
		"omitted":          {},
		"when needed":      {[]ContextManagement{{Type: new("compaction")}}, &run.Compact{}},
		"from a threshold": {[]ContextManagement{{Type: new("compaction"), CompactThreshold: new(int64(2000))}}, &run.Compact{At: 2000}},
	} {
		q := &run.Request{}
		if err := parseRest(&CreateResponse{ContextManagement: c.in}, q, &response.Settings{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if (q.Compact == nil) != (c.want == nil) || c.want != nil && *q.Compact != *c.want {
			t.Errorf("%s: %+v, want %+v", name, q.Compact, c.want)
		}
	}
	if parseRest(&CreateResponse{ContextManagement: []ContextManagement{{Type: new("compaction"), CompactThreshold: new(int64(-5))}}}, &run.Request{}, &response.Settings{}) == nil {
		t.Error("a threshold below 1000 is taken")
	}
}
