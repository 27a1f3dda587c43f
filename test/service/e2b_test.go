package service

import (
	"slices"
	"testing"
)

// e2bPackage is E2B's code interpreter for JavaScript, which brings its SDK.
const e2bPackage = "@e2b/code-interpreter@2.8.0"

// TestE2BClients drives the packages that E2B publishes, as they are.
func TestE2BClients(t *testing.T) {
	s := shared(t)
	env := []string{"E2B_API_URL=" + s.URL + "/e2b", "E2B_SANDBOX_URL=" + s.URL + "/e2b"}
	t.Run("Python", func(t *testing.T) {
		t.Parallel()
		const want = "commands\nterminal\nfiles\nhosts\ncode\nlife\nrefusals\nasynchronous\n"
		if out := python(t, "e2b_client.py", append(slices.Clone(env), "E2B_API_KEY="+s.Tenant(t, "e2b-python", "pro"))...); out != want {
			t.Errorf("got %s", out)
		}
	})
	t.Run("JavaScript", func(t *testing.T) {
		t.Parallel()
		const want = "commands\nterminal\nfiles\nhosts\ncode\nlife\n"
		if out := program(t, "e2b.mjs", append(slices.Clone(env), "E2B_API_KEY="+s.Tenant(t, "e2b-javascript", "pro"))...); out != want {
			t.Errorf("got %s", out)
		}
	})
}
