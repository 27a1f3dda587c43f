package usagetest

import (
	"maps"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/usage"
)

func testCalls(t *testing.T, o Opened) {
	at := monday.Add(time.Hour)
	record(t, o,
		usage.Entry{TraceID: "trc_1", Tenant: "a", Source: "web_search", At: at},
		usage.Entry{TraceID: "trc_1", Tenant: "a", Source: "web_search", At: at.Add(time.Second)},
		usage.Entry{TraceID: "trc_1", Tenant: "a", Source: "fetch_url", At: at.Add(2 * time.Second)},
		usage.Entry{TraceID: "trc_2", Tenant: "a", Source: "web_search", At: at.Add(3 * time.Second)},
		usage.Entry{TraceID: "trc_1", Tenant: "b", Source: "web_search", At: at},
		usage.Entry{TraceID: "trc_1", Tenant: "a", Source: "web_search", At: at.Add(time.Minute)},
	)
	got, err := o.Store.Calls(t.Context(), "a", "trc_1", at, at.Add(time.Minute))
	if err != nil || !maps.Equal(got, map[string]int{"web_search": 2, "fetch_url": 1}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := o.Store.Calls(t.Context(), "a", "trc_3", at, at.Add(time.Minute)); err != nil || len(got) != 0 {
		t.Errorf("of another trace %v, %v", got, err)
	}
}
