package packages

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/atoll-run/atoll/internal/core/requirement"
)

// The two forms of a page of a Python package index.
const (
	simpleJSON = "application/vnd.pypi.simple.v1+json"
	simpleHTML = "application/vnd.pypi.simple.v1+html"
)

func (m *Mirror) pipPage(w http.ResponseWriter, r *http.Request) {
	name := requirement.Normal(Pip, r.PathValue("name"))
	accept := "text/html"
	if strings.Contains(r.Header.Get("Accept"), simpleJSON) {
		accept = simpleJSON + ", " + simpleHTML + ";q=0.2, text/html;q=0.1"
	}
	body, at, kind, ok := m.page(w, r, name, accept, m.upstream.JoinPath(name, "/"))
	if !ok {
		return
	}
	rewrite := m.rewriteHTML
	if strings.HasPrefix(kind, simpleJSON) {
		rewrite = m.rewriteFiles
	} else {
		kind = "text/html; charset=utf-8"
	}
	m.answer(w, kind, body, at, rewrite)
}

func (m *Mirror) npmPage(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if scope := r.PathValue("scope"); scope != "" {
		name = scope + "/" + name
	}
	name = requirement.Normal(NPM, name)
	accept := "application/json"
	if brief := "application/vnd.npm.install-v1+json"; strings.Contains(r.Header.Get("Accept"), brief) {
		accept = brief + ", application/json;q=0.5"
	}
	u := *m.upstream
	u.RawPath = u.EscapedPath() + "/" + url.PathEscape(name)
	u.Path += "/" + name
	if body, at, kind, ok := m.page(w, r, name, accept, &u); ok {
		m.answer(w, kind, body, at, m.rewriteTarballs)
	}
}

// answer sends a page with its links led through here.
func (m *Mirror) answer(w http.ResponseWriter, kind string, body []byte, at *url.URL, rewrite func([]byte, *url.URL) ([]byte, error)) {
	body, err := rewrite(body, at)
	if err != nil {
		m.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // a client that is gone
}

// here is a page's link, led through here.
func (m *Mirror) here(link string, page *url.URL) (string, bool) {
	u, err := page.Parse(strings.TrimSpace(link))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	return m.link(u), true
}

// rewriteFiles rewrites the JSON form of an index's page.
func (m *Mirror) rewriteFiles(body []byte, page *url.URL) ([]byte, error) {
	doc, err := decode(body)
	if err != nil {
		return nil, err
	}
	files, _ := doc["files"].([]any)
	for _, f := range files {
		m.rewriteField(f, "url", page)
	}
	return json.Marshal(doc)
}

// rewriteTarballs rewrites what an npm registry tells of a package.
func (m *Mirror) rewriteTarballs(body []byte, page *url.URL) ([]byte, error) {
	doc, err := decode(body)
	if err != nil {
		return nil, err
	}
	versions, _ := doc["versions"].(map[string]any)
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok {
			m.rewriteField(v["dist"], "tarball", page)
		}
	}
	return json.Marshal(doc)
}

// rewriteField rewrites a link in an object; one that leads nowhere goes.
func (m *Mirror) rewriteField(object any, field string, page *url.URL) {
	o, ok := object.(map[string]any)
	if !ok {
		return
	}
	link, _ := o[field].(string)
	if at, ok := m.here(link, page); ok {
		o[field] = at
	} else {
		delete(o, field)
	}
}

func decode(body []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var doc map[string]any
	return doc, d.Decode(&doc)
}

// rewriteHTML rewrites the HTML form of an index's page.
func (m *Mirror) rewriteHTML(body []byte, page *url.URL) ([]byte, error) {
	var out bytes.Buffer
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		if z.Next() == html.ErrorToken {
			if z.Err() == io.EOF {
				return out.Bytes(), nil
			}
			return nil, z.Err()
		}
		t := z.Token()
		if t.Data == "base" {
			page = based(t, page)
			continue
		}
		for i := range t.Attr {
			if a := &t.Attr[i]; a.Key == "href" {
				a.Val, _ = m.here(a.Val, page)
			}
		}
		out.WriteString(t.String())
	}
}

// based is what a page's links are relative to after its base element.
func based(t html.Token, page *url.URL) *url.URL {
	for _, a := range t.Attr {
		if a.Key == "href" {
			if u, err := page.Parse(a.Val); err == nil {
				return u
			}
		}
	}
	return page
}
