package docs_test

import (
	_ "embed"
	"fmt"
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

	"github.com/atoll-run/atoll/internal/edge/httpapi/admin"
	"github.com/atoll-run/atoll/internal/edge/httpapi/environment"
	"github.com/atoll-run/atoll/internal/edge/httpapi/sandbox"
	"github.com/atoll-run/atoll/internal/edge/httpapi/thread"
	"github.com/atoll-run/atoll/internal/edge/httpapi/tool"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/atolltest/chromium"
	"github.com/atoll-run/atoll/test/httpapitest"
)

// walk looks at one operation in so many of each tag, then searches for one.
//
//go:embed testdata/walk.js
var walk string

// TestPage opens /docs in Chromium: operations have their own path, method, parameters,
// example and answers, search finds one, a request can be tried, no error is in the
// console, and no request is for another host. Drawing all takes minutes, so that a soak
// does, and otherwise a fifth of each tag's is drawn.
func TestPage(t *testing.T) {
	server := httptest.NewServer(httpapitest.New(t, func(c *httpapitest.Setup) {
		c.Sandboxes, c.Threads, c.Tools, c.Admin, c.Environments = &sandbox.Handlers{}, &thread.Handlers{}, &tool.Handlers{}, &admin.Handlers{}, &environment.Handlers{}
	}))
	t.Cleanup(server.Close)
	origin := strings.Replace(server.URL, "127.0.0.1", "atoll.example", 1)
	// Scalar behaves differently on a loopback host.
	ctx := chromium.Start(t, 5*time.Minute, chromedp.Flag("host-resolver-rules", "MAP atoll.example 127.0.0.1"), chromedp.WindowSize(1400, 1000))

	var mu sync.Mutex
	var said, asked []string
	listen := func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			asked = append(asked, e.Request.URL)
		case *network.EventWebSocketCreated:
			asked = append(asked, e.URL)
		case *log.EventEntryAdded:
			said = append(said, string(e.Entry.Level)+": "+e.Entry.Text)
		case *runtime.EventExceptionThrown:
			said = append(said, "exception: "+e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				for _, arg := range e.Args {
					said = append(said, string(e.Type)+": "+string(arg.Value)+arg.Description)
				}
			}
		}
	}
	if err := chromedp.Listen(ctx, listen); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(origin+"/docs")); err != nil {
		t.Fatal(err)
	}
	every := atolltest.Count(5, 1)
	result, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
		All, Seen int
		Wrong     []string
	}](fmt.Sprintf("%s(%d)", walk, every), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range result.Wrong {
		t.Error(wrong)
	}
	if result.All < 129 || result.Seen < result.All/every {
		t.Errorf("the page has %d operations, and %d of them were drawn", result.All, result.Seen)
	}

	mu.Lock()
	defer mu.Unlock()
	for _, s := range said {
		t.Errorf("the console has: %s", s)
	}
	for _, address := range asked {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && "http://"+u.Host != origin {
			t.Errorf("the page asked %s", address)
		}
	}
}
