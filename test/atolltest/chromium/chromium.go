// Package chromium starts a browser for tests.
package chromium

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// Start starts Chromium and returns the context of its first tab. The browser ends with the test,
// or when the timeout is over.
func Start(t *testing.T, timeout time.Duration, options ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; scripts/test-deps.sh installs it", err)
	}
	all := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox,                     // Chromium's sandbox refuses to start as root
		chromedp.Flag("no-proxy-server", true), // servers of tests listen on this machine
		chromedp.WSURLReadTimeout(time.Minute),
	)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(all, options...)...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && t.Context().Err() == nil {
			t.Errorf("close the browser: %v", err)
		}
		end()
	})
	return ctx
}
