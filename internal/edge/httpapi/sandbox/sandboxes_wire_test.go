package sandbox

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// TestSandboxOf: image is what runs, and the time of an unused sandbox's end is shown.
func TestSandboxOf(t *testing.T) {
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		sb   sandbox.Sandbox
		want map[string]any
	}{
		"of a later version": {sandbox.Sandbox{Image: "debian", ImageWarning: "why"}, map[string]any{"image_warning": "why", "unused_until": nil}},
		"of an alias":        {sandbox.Sandbox{Image: "debian", ImageAlias: "node:22"}, map[string]any{"image": "debian", "image_alias": "node:22", "unused_until": nil}},
		"of an environment":  {sandbox.Sandbox{Image: "debian"}, map[string]any{"image": "debian", "image_alias": nil, "unused_until": nil}},
		"asleep":             {sandbox.Sandbox{State: sandbox.Sleeping, UnusedUntil: &until}, map[string]any{"unused_until": "2026-01-02T02:04:05Z", "expires_at": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(sandboxOf(&c.sb))
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			for field, want := range c.want {
				if got[field] != want {
					t.Errorf("%s is %v, not %v", field, got[field], want)
				}
			}
		})
	}
}
