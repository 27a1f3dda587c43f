package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/atoll-run/atoll/test/atolltest/chromium"
)

// browser is a Chromium of the test's own, which ends with it.
type browser struct {
	t   *testing.T
	ctx context.Context // of its process
}

func newBrowser(t *testing.T) browser {
	t.Helper()
	b := browser{t, chromium.Start(t, 3*time.Minute)}
	b.do(b.ctx)
	return b
}

func (b browser) do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// open opens a page in a tab of its own.
func (b browser) open(url string) tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	t := tab{b, ctx}
	b.do(ctx, chromedp.Navigate(url))
	return t
}

// tab is a page.
type tab struct {
	browser
	ctx context.Context
}

// text waits until an element shows a text.
func (p tab) text(selector, want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.PollFunction[bool](`(selector, want) => document.querySelector(selector)?.textContent === want`,
		chromedp.WithPollingArgs(selector, want), chromedp.WithPollingTimeout(time.Minute)))
	if err != nil {
		html, _ := chromedp.Run(p.ctx, chromedp.OuterHTML("html")) // it is for the message
		p.t.Fatalf("%s does not become %q: %v\n%s", selector, want, err, html)
	}
}

func (p tab) click(selector string) {
	p.t.Helper()
	p.do(p.ctx, chromedp.Click(selector))
}

// says is what the body of an async function returns, or the name of what it
// throws.
func (p tab) says(body string) string {
	p.t.Helper()
	script := "(async () => { try { return String(await (async () => {" + body + "})()) } catch (e) { return 'thrown: ' + e.name } })()"
	out, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}
