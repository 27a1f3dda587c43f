package service

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// searches answers those of the tests' servers: of pages as SearXNG does, of people as
// docs/reference/web.md says.
var searches = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/search":
		words, _, _ := strings.Cut(r.URL.Query().Get("q"), " ")
		name, _ := json.Marshal("About " + words) // any string can be
		_, _ = fmt.Fprintf(w, `{"query":"","results":[
			{"title":%s,"url":"https://example.org/%s","content":"Rings of coral.","publishedDate":"2026-03-01T00:00:00","engine":"fake"},
			{"title":"Elsewhere","url":"https://example.com/","content":"Other.","publishedDate":null},
			{"title":"More about atolls","url":"https://sub.example.org/more","content":"Lagoons.","publishedDate":null}],"unresponsive_engines":[]}`, name, url.PathEscape(strings.ToValidUTF8(words, "")))
	case "/people":
		_, _ = io.WriteString(w, `{"results":[{"title":"A person","url":"https://example.org/person","snippet":"Works here."}]}`)
	case "/page":
		_, _ = io.WriteString(w, `<!doctype html><title>Atolls</title><p>Rings of coral.</p>`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}))

// searchSettings have a server use searches.
var searchSettings = []string{
	"ATOLL_SEARCH_PROVIDER=searxng", "ATOLL_SEARCH_URL=" + searches.URL,
	"ATOLL_FETCH_URL=on", "ATOLL_FETCH_ALLOW=127.0.0.1", "ATOLL_PEOPLE_SEARCH_PROVIDER=http", "ATOLL_PEOPLE_SEARCH_URL=" + searches.URL + "/people",
}

// TestPublishedClientsSearch drives client.search.create of the contract's own clients. Each
// search is in the ledger and in the audit trail, without its words.
func TestPublishedClientsSearch(t *testing.T) {
	s := shared(t)
	key := s.Tenant(t, "searcher", "pro")
	if out := python(t, "search_client.py", "PERPLEXITY_BASE_URL="+s.URL, "PERPLEXITY_API_KEY="+key); !strings.HasSuffix(out, "sync\nasync\n") {
		t.Errorf("got %s", out)
	}
	if out := program(t, "search.mjs", "ATOLL_URL="+s.URL, "ATOLL_KEY="+key); out != "search\n" {
		t.Errorf("got %s", out)
	}
	read := string(s.Must(t, key, http.MethodPost, "/v1/fetch", map[string]any{"url": []string{searches.URL + "/page", "http://169.254.169.254/"}}).Body)
	if !strings.Contains(read, `"title":"Atolls","text":"Rings of coral."`) || !strings.Contains(read, "must not lead to a private") {
		t.Errorf("read %s", read)
	}
	var used struct {
		Days []struct {
			Source string
			Calls  int
		}
	}
	s.Must(t, key, http.MethodGet, "/v1/usage", nil).Into(t, http.StatusOK, &used)
	calls := map[string]int{}
	for _, d := range used.Days {
		calls[d.Source] += d.Calls
	}
	if calls["web_search"] != 3 || calls["people_search"] != 2 || calls["fetch_url"] != 2 {
		t.Errorf("the ledger has %v", calls)
	}
	trail := string(s.Must(t, s.AdminKey(t), http.MethodGet, "/v1/admin/tenants/searcher/audit", nil).Body)
	sum := sha256.Sum256([]byte("atolls\nreefs"))
	if !strings.Contains(trail, `"source":"people_search"`) || !strings.Contains(trail, hex.EncodeToString(sum[:])) || strings.Contains(trail, "reefs") {
		t.Errorf("the trail is %s", trail)
	}
}
