package redteam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// fetchCases have the server fetch pages that the caller cannot reach.
func fetchCases() []Case {
	return []Case{
		{"fetch/addresses", Critical, "has the server fetch loopback, private, metadata and its machine's own addresses, in every spelling", "the server rejects each for its address, and sends no request", fetchAddresses},
		{"fetch/schemes", Critical, "has the server fetch files and speak other protocols", "the server rejects each URL", fetchSchemes},
		{"fetch/redirects", Critical, "has allowed pages redirect to such addresses", "the server follows no redirect there", fetchRedirects},
		{"fetch/agents", Critical, "has a model fetch such addresses and redirects", "the model gets an error, and the server sends no request", fetchAgents},
		{"fetch/environment", Critical, "has a model fetch and search in a session whose environment has a profile without a network", "the model gets an error, and the server sends no request", fetchEnvironment},
	}
}

// inner returns URLs that the server must not fetch for any caller.
func inner(a *arena, l *lure) []string {
	all := []string{
		"http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/",
		"http://0.0.0.0:" + portOf(a) + "/", "http://[::]:" + portOf(a) + "/", "http://[::1]:" + portOf(a) + "/healthz", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::a9fe:a9fe]/", "http://0xa9fea9fe/", "http://2852039166/", "http://0251.0376.0251.0376/",
	}
	if l != nil && l.canary != "" {
		_, port, _ := strings.Cut(l.canary, ":")
		all = append(all, "http://"+l.canary+"/canary", "http://127.3:"+port+"/canary", "http://2130706435:"+port+"/canary", "http://0x7f000003:"+port+"/canary", "http://0177.0.0.3:"+port+"/canary",
			"http://[::ffff:127.0.0.3]:"+port+"/canary", "http://example.com@"+l.canary+"/canary", "http://127.0.0.3.:"+port+"/canary", "http://127。0。0。3:"+port+"/canary")
	}
	return all
}

// fetched is the answer for one URL.
type fetched struct {
	URL, Text, Error string
}

// fetch has the server fetch URLs for a caller, and skips the case if fetching is off.
func (a *arena) fetch(ctx context.Context, by caller, urls ...string) ([]fetched, *answer, error) {
	got, err := by.do(ctx, http.MethodPost, "/v1/fetch", map[string]any{"url": urls})
	if err != nil {
		return nil, nil, err
	}
	if got.Status == http.StatusNotFound {
		return nil, got, skip("this server fetches no pages (fetch_url is off)")
	}
	var out struct{ Contents []fetched }
	_ = json.Unmarshal(got.Body, &out) // an error has no contents
	return out.Contents, got, nil
}

// strayed reports a request that reached the forbidden address.
func (l *lure) strayed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hits {
		if l.canary != "" && h.Host == l.canary {
			return found("the server made a request to http://%s%s", h.Host, h.Path)
		}
	}
	return nil
}

// anyLure returns the lure, or nil if the server cannot reach it.
func (a *arena) anyLure(ctx context.Context) *lure {
	l, err := a.theLure(ctx)
	if err != nil {
		return nil
	}
	return l
}

func fetchAddresses(ctx context.Context, a *arena) error {
	l := a.anyLure(ctx)
	for _, u := range inner(a, l) {
		if err := a.unfetched(ctx, u); err != nil {
			return err
		}
	}
	if l != nil {
		return l.strayed()
	}
	return nil
}

// addressWords mark refusals that name the address as the reason. A refusal for another reason does
// not prove that the server checks addresses: the address may simply not answer.
var addressWords = []string{"private", "local", "reserved", "address", "http or https", "host", "user name"}

// unfetched has the server fetch a URL, and expects a refusal before the server connects.
func (a *arena) unfetched(ctx context.Context, u string) error {
	pages, got, err := a.fetch(ctx, a.plain, u)
	if err != nil {
		return err
	}
	said := string(got.Body)
	if got.Status < 300 {
		if len(pages) != 1 || pages[0].Error == "" || pages[0].Text != "" {
			return found("the server fetched %s: %s", u, got)
		}
		said = pages[0].Error
	}
	if got.Status >= 500 || strings.Contains(said, "connection refused") || strings.Contains(said, "timed out") || strings.Contains(said, "did not answer") {
		return found("the server tried to fetch %s: %s", u, said)
	}
	for _, word := range addressWords {
		if strings.Contains(said, word) {
			return nil
		}
	}
	return found("the server rejects %s for another reason: %s", u, said)
}

func fetchSchemes(ctx context.Context, a *arena) error {
	for _, u := range []string{
		"file:///etc/passwd", "FILE:///etc/passwd", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/stat", "ftp://127.0.0.1/", "unix:///run/docker.sock", "data:text/html,x", "jar:http://x!/", "//127.0.0.3/", "http:///etc/passwd", "http://", "javascript:1",
		"http://x\r\nHost: y/", "http://127.0.0.3\\@example.com/", "http://user:pass@10.0.0.1/",
	} {
		pages, got, err := a.fetch(ctx, a.plain, u)
		if err != nil {
			return err
		}
		if got.Status >= 500 || got.Status < 300 && (len(pages) != 1 || pages[0].Error == "" || pages[0].Text != "") {
			return found("the server fetched %q: %s", u, got)
		}
	}
	return nil
}

// reachable skips a case if the server may not fetch the lure's pages.
func (a *arena) reachable(ctx context.Context) (*lure, error) {
	l, err := a.theLure(ctx)
	if err != nil {
		return nil, err
	}
	pages, got, err := a.fetch(ctx, a.plain, "http://"+l.addr+"/page")
	if err != nil {
		return nil, err
	}
	if len(pages) != 1 || !strings.Contains(pages[0].Text, lureWords) {
		return nil, skip("not run: needs fetch_allow to include the address of --listen: %s", got)
	}
	return l, nil
}

// astray returns the URL of a lure page that redirects.
func (l *lure) astray(to string) string { return "http://" + l.addr + "/to?url=" + url.QueryEscape(to) }

func fetchRedirects(ctx context.Context, a *arena) error {
	l, err := a.reachable(ctx)
	if err != nil {
		return err
	}
	for _, u := range append(inner(a, l), "file:///etc/passwd", "gopher://127.0.0.1:6379/_INFO") {
		if err := a.unfetched(ctx, l.astray(u)); err != nil {
			return err
		}
		if err := a.unfetched(ctx, l.astray(l.astray(u))); err != nil {
			return err
		}
	}
	return l.strayed()
}

// fetches returns model calls that fetch URLs, at most five in each call.
func fetches(urls []string) (calls []toolCall) {
	for ; len(urls) > 0; urls = urls[min(5, len(urls)):] {
		calls = append(calls, toolCall{"fetch_url", map[string]any{"urls": urls[:min(5, len(urls))]}})
	}
	return calls
}

func fetchAgents(ctx context.Context, a *arena) error {
	l, err := a.reachable(ctx)
	if err != nil {
		return err
	}
	urls := inner(a, l)
	for _, u := range inner(a, l) {
		urls = append(urls, l.astray(u))
	}
	t, err := a.converse(ctx, a.plain, map[string]any{"tools": []any{map[string]any{"type": "fetch_url"}}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	calls := fetches(urls)
	if _, err := t.play(ctx, calls...); err != nil {
		return err
	}
	if err := l.strayed(); err != nil {
		return err
	}
	return t.unread(ctx, len(calls))
}

// unread reports a fetch result that shows a page.
func (t talk) unread(ctx context.Context, calls int) error {
	got, err := t.results(ctx)
	if err != nil {
		return err
	}
	for _, r := range got {
		if strings.Contains(r.Content, lureWords) || strings.Contains(r.Content, `"status":"ok"`) {
			return found("the model read a page: %.300q", r.Content)
		}
	}
	if len(got) < calls {
		return fmt.Errorf("the model made %d of %d calls", len(got), calls)
	}
	return nil
}

func fetchEnvironment(ctx context.Context, a *arena) error {
	l, err := a.reachable(ctx)
	if err != nil {
		return err
	}
	c, err := a.theSilent(ctx)
	if err != nil {
		return err
	}
	t, err := a.converse(ctx, c, map[string]any{"tools": []any{map[string]any{"type": "fetch_url"}, map[string]any{"type": "web_search"}}}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = t.end(ctx) }()
	before := len(l.reached("/silent"))
	calls := []toolCall{{"fetch_url", map[string]any{"urls": []string{"http://" + l.addr + "/silent"}}}, {"fetch_url", map[string]any{"urls": []string{l.astray("http://" + l.addr + "/silent")}}}, {"web_search", map[string]any{"queries": []string{"redteam"}}}}
	if _, err := t.play(ctx, calls...); err != nil {
		return err
	}
	if len(l.reached("/silent")) > before {
		return found("the server fetched a page for a model whose environment has no network")
	}
	got, err := t.results(ctx)
	if err != nil {
		return err
	}
	for _, r := range got {
		if !r.IsError {
			return found("a fetch or search succeeded without a network: %.300q", r.Content)
		}
	}
	return t.unread(ctx, len(calls))
}

// theSilent returns a caller in an environment whose profile has no network.
func (a *arena) theSilent(ctx context.Context) (caller, error) {
	return a.silent.get(ctx, func(ctx context.Context) (caller, error) {
		return a.room(ctx, attackerTenant, envSilent, map[string]any{"permission_profile": "isolated"})
	})
}
