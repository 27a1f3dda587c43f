package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdp "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/atolltest/chromium"
)

// pageOrigin is that of pages of these tests, which the server allows.
const pageOrigin = "http://app.example"

// TestChromium uses the library for TypeScript in a page, with a token that can do no more than
// the page needs: in the page itself, in a worker, and by a view of each framework.
func TestChromium(t *testing.T) {
	p := arranged(t)
	folder := t.TempDir()
	typescriptFolder(t, "node", "scripts/page.mjs", folder)
	page := `<!doctype html><title>Atoll</title><script type="module" src="page.js"></script>`
	if err := os.WriteFile(filepath.Join(folder, "index.html"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(site.Close)
	ctx, said := browser(t, site.URL)
	place, err := json.Marshal(map[string]string{"baseUrl": p.url, "apiKey": token(t, p)})
	if err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(pageOrigin+"/")); err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
		Page, Worker any
		Views        map[string][]string
	}]("exercise("+string(place)+")", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%v\n%s", err, said())
	}
	want := map[string]any{
		"streamed": "1\n2\n3\n", "read": "hello\n", "thrown": "AbortError", "cancelled": "cancelled",
		"ran":    map[string]any{"stdout": "hello\n", "stderr": "", "exit_code": 3.0, "timed_out": false},
		"states": []any{true, true}, "reactive": []any{"42", "49"}, "refused": "forbidden",
	}
	for of, result := range map[string]any{"the page": got.Page, "its worker": got.Worker} {
		if why := match(want, result); why != "" {
			t.Errorf("%s: %s: %s", of, why, short(result))
		}
	}
	for _, name := range []string{"react", "vue", "solid", "svelte"} {
		want := strings.Join([]string{"pending", name + " one", "pending", name + " two", ""}, "|")
		if seen := strings.Join(got.Views[name], "|"); seen != want {
			t.Errorf("%s has shown %q, want %q", name, seen, want)
		}
	}
	if text := said(); text != "" {
		t.Errorf("the console has:\n%s", text)
	}
}

// token makes a token for a page.
func token(t *testing.T, p *place) string {
	t.Helper()
	var made struct{ Token string }
	server.Get(t).Must(t, p.keys["default"], http.MethodPost, "/v1/tokens", map[string]any{
		"scopes": []string{"execute", "read", "sandboxes"}, "origins": []string{pageOrigin},
	}).Into(t, http.StatusCreated, &made)
	return made.Token
}

// typescriptFolder runs a program in the library's folder, once what it needs is installed.
func typescriptFolder(t *testing.T, name string, args ...string) {
	t.Helper()
	for _, command := range [][]string{{"scripts/install.sh"}, append([]string{name}, args...)} {
		cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
		cmd.Dir = "../../sdk/typescript"
		if out, err := atolltest.Output(cmd); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

// browser starts Chromium, to which pageOrigin is the site at an address. What it returns beside
// is what pages have said on the console.
func browser(t *testing.T, site string) (_ context.Context, said func() string) {
	t.Helper()
	at, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	ctx := chromium.Start(t, 3*time.Minute,
		chromedp.Flag("host-resolver-rules", "MAP app.example:80 "+at.Host),
		chromedp.Flag("unsafely-treat-insecure-origin-as-secure", pageOrigin)) // as with TLS, there are hashes
	var mu sync.Mutex
	var lines []string
	err = chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *cdp.EventExceptionThrown:
			lines = append(lines, "exception: "+e.ExceptionDetails.Text)
		case *cdp.EventConsoleAPICalled:
			for _, arg := range e.Args {
				lines = append(lines, string(e.Type)+": "+string(arg.Value)+arg.Description)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(lines, "\n")
	}
}
