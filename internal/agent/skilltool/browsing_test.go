package skilltool

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/loop/looptest"
	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/web"
	"github.com/atoll-run/atoll/test/atolltest"
)

func browses(config string) run.Request {
	return run.Request{Skills: []run.Skill{{Name: Browsing, Config: json.RawMessage(config)}}}
}

func TestPageTools(t *testing.T) {
	w := &world{of: browses(`{"allowed_domains": ["example.com"], "max_pages": 2, "max_text_kb": 1, "page_timeout_ms": 4000}`), end: looptest.Ended(execution.Success, "{}\na page")}
	out, err := w.do(t, openPageName, `{"url": "https://example.com/"}`)
	if err != nil || looptest.Text(out) != web.Strangers+"a page" || out.Result.Failed || len(out.Result.Parts) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	var asked map[string]any
	if err := json.Unmarshal(w.asked.Input.Stdin, &asked); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{"do": "open", "url": "https://example.com/", "allowed": []any{"example.com"}, "within": 4.0, "room": 1024.0} {
		if fmt.Sprint(asked[field]) != fmt.Sprint(want) {
			t.Errorf("%s is %v, not %v", field, asked[field], want)
		}
	}
	if w.asked.Language != language.Python || w.asked.Timeout != 10*time.Second || len(w.asked.Outputs) != 0 { // the most that the plan allows
		t.Errorf("it asked for %+v", w.asked)
	}
	w.said = []model.Item{
		{Call: &model.Call{ID: "a", Name: openPageName}}, {Call: &model.Call{ID: "b", Name: readPageName}},
		{Call: &model.Call{ID: "c", Name: followLinkName}}, {Call: &model.Call{ID: "call_1", Name: followLinkName}},
	}
	if out, err := w.do(t, followLinkName, `{"link": 1}`); err != nil || !strings.Contains(looptest.Text(out), "opened 2 pages") || !out.Refused {
		t.Errorf("a page more than the most: %+v, %v", out, err)
	}
	if out, err := w.do(t, readPageName, `{}`); err != nil || out.Result.Failed {
		t.Errorf("%+v, %v", out, err)
	}
	w.said = append(w.said, model.Item{Result: &model.Result{CallID: "c", Failed: true}}) // that page could not be loaded
	if out, err := w.do(t, followLinkName, `{"link": 1}`); err != nil || out.Result.Failed {
		t.Errorf("behind a page that was not opened: %+v, %v", out, err)
	}
	w.said = w.said[:4]
	w.of.Before = 1 // the first was in an earlier turn
	if out, err := w.do(t, followLinkName, `{"link": 1}`); err != nil || out.Result.Failed {
		t.Errorf("%+v, %v", out, err)
	}

	w = &world{of: browses(""), end: looptest.Ended(execution.Success, "{}\nSaved."), file: append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)}
	w.end.Files.Files = []execution.OutputFile{{Name: picture, Bytes: 108}}
	out, err = w.do(t, screenshotPageName, `{}`)
	if err != nil || len(out.Result.Parts) != 2 || out.Result.Parts[1].MediaType != "image/png" || !bytes.Equal(out.Result.Parts[1].Data, w.file) || w.asked.Outputs[0] != picture {
		t.Errorf("%+v, %v", out, err)
	}
	w.file = []byte("no picture")
	if out, err := w.do(t, screenshotPageName, `{}`); err != nil || len(out.Result.Parts) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	w.end.Files.Files[0].Bytes = maxPicture + 1
	if out, err := w.do(t, screenshotPageName, `{}`); err != nil || !strings.Contains(looptest.Text(out), "not shown") {
		t.Errorf("%+v, %v", out, err)
	}
	w.end = looptest.Ended(execution.Failed, "{\"failed\":true}\nit was not loaded")
	w.end.Hint = "allow it"
	if out, err := w.do(t, openPageName, `{"url": "http://a.example"}`); err != nil || looptest.Text(out) != "It was not done: it was not loaded\nHint: allow it" || !out.Result.Failed {
		t.Errorf("%+v, %v", out, err)
	}
	for tool, bad := range map[string][]string{
		openPageName:        {`{}`, `{"url": "example.com"}`, `{"url": "file:///etc/passwd"}`, `{"url": "https:///x"}`, `{"url": "http://a/` + strings.Repeat("a", maxURL) + `"}`},
		followLinkName:      {`{}`, `{"link": 0}`, `{"link": "1"}`},
		extractFromPageName: {`{"what": "pictures"}`, `{"what": "elements"}`, `{"what": "links", "first": 0}`},
		findInPageName:      {`{"text": ""}`, `{"text": "` + strings.Repeat("a", maxSelector+1) + `"}`},
		readPageName:        {`{"start": 0}`}, screenshotPageName: {`{"file_path": ""}`},
	} {
		for _, arguments := range bad {
			if _, err := w.do(t, tool, arguments); err == nil {
				t.Errorf("%s takes %.80s", tool, arguments)
			}
		}
	}
	for config, want := range map[string]int{"": 6, `{"screenshots": true}`: 6, `{"screenshots": false}`: 5} {
		if all, err := browsing.offered(json.RawMessage(config)); err != nil || len(all) != want {
			t.Errorf("%s gives %d tools, %v", config, len(all), err)
		}
	}
}

const shop = `<!DOCTYPE html><title>A  shop</title><h1>Things</h1><p>Some <b>bold</b> words &amp; a <a href="/other">way on</a>.</p>
<ul><li>one<li><a href="mailto:a@example.com">two</a></ul><div style="display: none">hidden</div><span style="visibility: hidden">unseen</span>
<table><tr><th>n<th>x</tr><tr><td colspan="2">a|b</table><pre>a
  b</pre><img alt="a logo" src="data:,"><input name="q" value="v"><input type="password" name="p" value="secret"><iframe src="/frame"></iframe>
<div id="late"></div><script>
  document.querySelector("#late").attachShadow({mode: "open"}).innerHTML = "<p>by a script</p>";
  Array.prototype.push = () => { throw new Error("of the page") };
  alert("wait"); window.open("/other");
</script>`

// TestBrowser runs the program itself with this machine's Python and Chromium.
func TestBrowser(t *testing.T) {
	for _, needed := range []string{"python3", "chromium"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Fatalf("%v: make test-deps installs it", err)
		}
	}
	mux := http.NewServeMux()
	page := func(path, kind, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		})
	}
	page("/{$}", "text/html", shop)
	page("/frame", "text/html", "of a frame")
	page("/long", "text/html", strings.Repeat("<p>All work and no play.</p>", 100))
	page("/titled", "text/html", "<title>"+strings.Repeat("long ", 1<<17)+"</title>words")
	page("/file", "application/zip", "PK")
	page("/paper", "application/pdf", "%PDF-1.4")
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<h2>Other</h2>from %s", r.Referer())
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	secure := httptest.NewTLSServer(mux)
	t.Cleanup(secure.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := "http://localhost:" + port
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere+"/other", http.StatusFound)
	})
	page("/framed", "text/html", `outside <iframe src="`+elsewhere+`/other"></iframe><img src="http://name.invalid/">`)
	page("/jump", "text/html", `<script>location = "`+elsewhere+`/other"</script>`)

	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("-test-%d", os.Getpid())
	type object = map[string]any
	do := func(call object) (text, refused string) {
		t.Helper()
		for k, v := range (object{"script": pageScript, "name": name, "within": 10, "idle": 60, "room": 4000, "beside": picture}) {
			if _, there := call[k]; !there {
				call[k] = v
			}
		}
		return answerOf(t, runs(t, browser, dir, call, "SSL_CERT_FILE="+ca)) // it exits with 1 where a page was not reached
	}
	t.Cleanup(func() { // the process that was left behind, and the browser
		do(object{"do": "read", "idle": 0})
		atolltest.Until(t, time.Minute, "the browser has ended, and its folder is gone", func() bool {
			c, err := net.Dial("unix", "@atoll-browser"+name)
			if err == nil {
				_ = c.Close()
				return false
			}
			left, err := filepath.Glob(filepath.Join(dir, "atoll-browser-*"))
			return err == nil && len(left) == 0
		})
	})
	const numbers = "; numbers in brackets are links]\n\n"
	for _, c := range []struct {
		call object
		want string
	}{
		{object{"do": "read"}, "!no page is open"},
		{object{"do": "open", "url": s.URL}, "A shop\n" + s.URL + "/\n[characters 1 to 141 of 141" + numbers +
			"# Things\n\nSome bold words & a way on [1].\n\n- one\n- two\n\n| n | x\n| a|b\n\na\n  b\n\n[image: a logo][text q: v][password p: ]of a frame\n\nby a script"},
		{object{"do": "find", "text": "BOLD WORDS"}, "found in places: 1\n[at 16] # Things Some bold words & a way on [1]."},
		{object{"do": "extract", "what": "tables"}, "tables 1 to 1 of 1:\n| n | x |\n| --- | --- |\n| a\\|b |  |\n"},
		{object{"do": "extract", "what": "links"}, "links 1 to 1 of 1:\n[1] way on " + s.URL + "/other\n"},
		{object{"do": "extract", "what": "elements", "selector": "li", "first": 2}, "elements 2 to 2 of 2:\ntwo\n"},
		{object{"do": "extract", "what": "elements", "selector": "a", "attribute": "href"}, s.URL + "/other\nmailto:"},
		{object{"do": "extract", "what": "elements", "selector": "<"}, "!selector is none of CSS"},
		{object{"do": "screenshot"}, "Saved as screenshots/1.png"},
		{object{"do": "screenshot", "file_path": "x/whole.jpg", "full_page": true}, "Saved as x/whole.jpg"},
		{object{"do": "screenshot", "file_path": "x.gif"}, "!file_path must end with"},
		{object{"do": "follow", "link": 2}, "!the page, as it was read last, has 1 links"},
		{object{"do": "follow", "link": 1}, "## Other\n\nfrom " + s.URL + "/"},
		{object{"do": "open", "url": s.URL + "/none"}, ", status 404\n"},
		{object{"do": "open", "url": s.URL + "/long", "room": 30}, "[characters 1 to 23 of "},
		{object{"do": "read", "room": 30, "start": 24}, numbers + "All work and no play.\n[the rest begins at start 47]"},
		{object{"do": "read", "start": 9999}, "!the page has "},
		{object{"do": "open", "url": s.URL + "/titled"}, "words"},
		{object{"do": "open", "url": s.URL + "/file"}, "!" + s.URL + "/file is no page"},
		{object{"do": "read"}, "!no page is open"},
		{object{"do": "open", "url": s.URL + "/paper"}, "!" + s.URL + "/paper is application/pdf"},
		{object{"do": "open", "url": s.URL + "/slow", "within": 1}, "!127.0.0.1 has not answered within 1 seconds"},
		{object{"do": "open", "url": "http://name.invalid/"}, "!http://name.invalid/ was not loaded: ERR_NAME_NOT_RESOLVED"},
		{object{"do": "open", "url": secure.URL + "/other"}, "## Other"},
		// Domains: without them all can be opened.
		{object{"do": "open", "url": s.URL + "/away"}, "## Other"},
		{object{"do": "open", "url": s.URL + "/away", "allowed": []string{"127.0.0.1"}}, "!the page leads on to localhost, which is not among"},
		{object{"do": "open", "url": elsewhere, "allowed": []string{"127.0.0.1"}}, "!localhost is not among the allowed_domains"},
		{object{"do": "open", "url": s.URL + "/jump", "allowed": []string{"127.0.0.1"}}, "!the page leads on to localhost"},
		{object{"do": "open", "url": s.URL + "/jump", "allowed": []string{"127.0.0.1", "localhost"}}, "## Other"},
		{object{"do": "open", "url": s.URL + "/framed", "allowed": []string{"127.0.0.1"}}, "at localhost is not among the allowed_domains]\n[not loaded: name.invalid (ERR_NAME_NOT_RESOLVED)]\n"},
	} {
		text, refused := do(c.call)
		if want, not := strings.CutPrefix(c.want, "!"); not && !strings.HasPrefix(refused, want) || !not && !strings.Contains(text, want) {
			delete(c.call, "script")
			t.Errorf("%v: %q, refused %q; want %q", c.call, text, refused, c.want)
		}
	}
	for _, noise := range []string{"", "{", "noise\n"} { // of others, who may go at once
		c, err := net.Dial("unix", "@atoll-browser"+name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(noise)); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	}
	if text, refused := do(object{"do": "read"}); !strings.Contains(text, "outside") {
		t.Errorf("after noise: %q, refused %q", text, refused)
	}
	for name, kind := range map[string]string{"screenshots/1.png": "image/png", "x/whole.jpg": "image/jpeg", picture: "image/jpeg"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || http.DetectContentType(data) != kind {
			t.Errorf("%s is no %s: %v", name, kind, err)
		}
	}
}
