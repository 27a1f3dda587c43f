package main

import (
	"testing"
	"time"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func TestSandboxColumns(t *testing.T) {
	early, late := time.Now(), time.Now().Add(time.Hour)
	for _, c := range []struct {
		expires, unused, want *time.Time
	}{
		{nil, nil, nil}, {&early, nil, &early}, {nil, &late, &late}, {&early, &late, &early}, {&late, &early, &early},
	} {
		if got := endOf(sdk.Sandbox{ExpiresAt: c.expires, UnusedUntil: c.unused}); got != c.want {
			t.Errorf("of %v and %v: %v, not %v", c.expires, c.unused, got, c.want)
		}
	}
	for want, sb := range map[string]sdk.Sandbox{"debian": {Image: "debian"}, "debian (node:22)": {Image: "debian", ImageAlias: "node:22"}} {
		if got := imageOf(sb); got != want {
			t.Errorf("got %q, not %q", got, want)
		}
	}
}
