package fetch

import (
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/web"
)

var somewhere = &url.URL{Scheme: "https", Host: "example.org", Path: "/page"}

// hostile are pages that cost as much as they can.
func hostile() map[string]string {
	upTo := func(piece string, size int) string { return strings.Repeat(piece, size/len(piece)) }
	return map[string]string{
		"nested":     upTo("<div>", maxPage),
		"nested 500": strings.Repeat("<div><p>text, text, "+strings.Repeat("<b>", 400)+"</p>", 40),
		"deep text":  strings.Repeat("<div>", 480) + upTo("<p>"+strings.Repeat("word, ", 200), maxPage-3000),
		"deep parts": strings.Repeat("<section class=article>", 480) + upTo("<p>"+strings.Repeat("word, ", 30), maxPage*3/4),
		"deep cells": strings.Repeat("<table><tr><td>", 100) + upTo("<p>"+strings.Repeat("word, ", 100), maxPage*3/4),
		"elements":   upTo("<p>a,b", maxPage),
		"few":        upTo("<p>long enough text, with commas, and so on and on</p>", maxNodes*25),
		"formatting": upTo("<b><i><a href=x>t", 60_000),
		"tables":     upTo("<table><tr><td>a, b</table>x", 300_000),
		"links":      upTo(`<a href="javascript:void(0)">x</a>`, 300_000),
		"divs":       "<div>" + upTo("<div>text<br><br>text</div>", 200_000),
		"breaks":     "<p>" + upTo("a<br><br>", 150_000),
		"fonts":      upTo("<font>a", 60_000),
		"attributes": "<p " + upTo("a=b ", maxPage) + ">x",
		"a text":     "<p>" + upTo("word, ", maxPage),
		"entities":   upTo("&notin;&#0;", maxPage),
		"comments":   upTo("<!--x-->", maxPage),
		"titles":     upTo("<title>t</title><h1>t</h1>", 400_000),
		"json":       `<script type="application/ld+json">` + strings.Repeat("[", maxPage/2) + `</script><p>text`,
		"images":     upTo("<noscript><img src=a.jpg></noscript><img>", 300_000),
	}
}

func TestHostilePagesAreBounded(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			began := cpu(t)
			var p web.Page
			readHTML(&p, text, somewhere)
			// Those that were not bounded took minutes.
			if took := cpu(t) - began; took > 10*time.Second {
				t.Errorf("it took %s of a processor", took)
			} else {
				t.Logf("%d bytes: %s of a processor", len(text), took)
			}
		})
	}
}

// cpu is the processor time that this thread has used.
func cpu(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestReadHTML(t *testing.T) {
	body := strings.Repeat("This is a sentence of the article, which is long enough, as articles are. ", 20)
	var p web.Page
	readHTML(&p, `<!doctype html><html><head><title>An article &amp; more</title><meta property="article:published_time" content="2026-03-01T10:00:00Z"></head>
		<body><nav><a href=/>Home</a></nav><article><h1>An article</h1><p>`+body+`</p><p>`+body+`</p><script>evil()</script></article><footer>Imprint</footer></body></html>`, somewhere)
	if p.Title != "An article & more" || !strings.Contains(p.Text, "a sentence of the article") || strings.Contains(p.Text, "evil") || strings.Contains(p.Text, "Home") || p.Date.Year() != 2026 {
		t.Errorf("got %+v", p)
	}
	p = web.Page{}
	readHTML(&p, `<title> A
		list </title><style>p{}</style><ul><li>one<li>two &lt;b&gt;</ul><script>if (a<b) {}</script>`, somewhere)
	if p.Title != "A list" || !strings.Contains(p.Text, "one") || !strings.Contains(p.Text, "two <b>") || strings.Contains(p.Text, "if (") {
		t.Errorf("got %+v", p)
	}
}

// FuzzReadHTML takes anything for a page.
func FuzzReadHTML(f *testing.F) {
	for name, text := range hostile() {
		if name != "json" {
			f.Add(text[:min(len(text), 500)])
		}
	}
	f.Add(`<html><head><title>T</title></head><body><article><p>` + strings.Repeat("text, ", 100) + `</article>`)
	f.Fuzz(func(t *testing.T, text string) {
		var p web.Page
		readHTML(&p, strings.ToValidUTF8(text, "\uFFFD"), somewhere)
		if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Title) || strings.ContainsAny(p.Title, "\n\x00") || strings.Contains(p.Text, "\x00") || len(p.Text) > 4*len(text)+100 {
			t.Fatalf("%q: %q", p.Title, p.Text)
		}
	})
}
