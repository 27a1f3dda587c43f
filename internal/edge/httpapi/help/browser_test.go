package help_test

import (
	_ "embed"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/atoll-run/atoll/test/atolltest/chromium"
	"github.com/atoll-run/atoll/test/httpapitest"
)

//go:embed testdata/visit.js
var visit string

// TestBrowser reads the site in Chromium: search finds a page, dark mode works, no page is
// wider than a phone, the console stays empty, and every request goes to this server.
func TestBrowser(t *testing.T) {
	server := httptest.NewServer(httpapitest.New(t))
	t.Cleanup(server.Close)
	ctx := chromium.Start(t, 3*time.Minute, chromedp.WindowSize(1400, 1000))
	var mu sync.Mutex
	var requests, messages []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			requests = append(requests, e.Request.URL)
		case *log.EventEntryAdded:
			messages = append(messages, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
		case *runtime.EventExceptionThrown:
			messages = append(messages, "exception: "+e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/help/")); err != nil {
		t.Fatal(err)
	}
	wrong, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](visit, chromedp.EvalAwaitPromise))
	if err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
	for _, page := range []string{"", "reference/http-api", "concepts/security", "tutorials/first-hour"} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile), chromedp.Navigate(server.URL+"/help/"+page)); err != nil {
			t.Fatal(err)
		}
		width, err := chromedp.Run(ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
		if err != nil || width > 390 {
			t.Errorf("%q is %d pixels wide on a phone of 390, %v", page, width, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, message := range messages {
		t.Errorf("the console shows: %s", message)
	}
	for _, request := range requests {
		if u, err := url.Parse(request); err != nil || u.Scheme != "data" && !strings.HasPrefix(request, server.URL) {
			t.Errorf("the site requests %s", request)
		}
	}
}
