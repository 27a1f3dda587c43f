package execution_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// TestKeysAreNotPrinted: logs and errors that show a thread, or a job with one, do not show its key.
func TestKeysAreNotPrinted(t *testing.T) {
	key := strings.Repeat("K", 64)
	th := &execution.Thread{ID: "notes", State: "ab", Key: []byte(key)}
	job := execution.Job{TraceID: "trc_1", Thread: th}
	var out bytes.Buffer
	for _, v := range []any{th, *th, job, &job, []any{th}} {
		fmt.Fprintf(&out, "%v %+v %s\n", v, v, v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
	}
	for _, v := range []any{th, *th} {
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
	}
	encoded, err := json.Marshal(th.Key)
	if err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, key) || strings.Contains(s, strings.Trim(string(encoded), `"`)) || strings.Contains(s, "75 75 75") || !strings.Contains(s, "thread notes") {
		t.Errorf("printed: %s", s)
	}
	without, err := json.Marshal(execution.Thread{ID: "notes"})
	if err != nil || strings.Contains(string(without), "Key") {
		t.Errorf("without a key: %s, %v", without, err)
	}
}
