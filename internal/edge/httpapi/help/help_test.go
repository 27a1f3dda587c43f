package help_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/atoll-run/atoll/test/httpapitest"
)

// document lists the links of a page and the anchors that other pages can link to.
type document struct {
	links   []string
	anchors map[string]bool
}

func parse(t *testing.T, page []byte) document {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	d := document{anchors: map[string]bool{}}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				d.anchors[a.Val] = true
			case a.Key == "href" && n.Data == "a", a.Key == "src":
				d.links = append(d.links, a.Val)
			}
		}
	}
	return d
}

// TestLinks checks that every link of every page leads to a page and an anchor that exist.
func TestLinks(t *testing.T) {
	server := httpapitest.New(t)
	pages := map[string]document{}
	get := func(address string) (document, int) {
		if d, ok := pages[address]; ok {
			return d, 200
		}
		w := httpapitest.Get(server, address)
		if w.Code != 200 {
			return document{}, w.Code
		}
		d := document{}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			d = parse(t, w.Body.Bytes())
		}
		pages[address] = d
		return d, 200
	}
	site, err := zip.OpenReader("../../../../api/helpsite/site/help.zip")
	if err != nil {
		t.Fatalf("the site is not built, run 'make docs': %v", err)
	}
	defer site.Close()
	err = fs.WalkDir(site, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" || name == "404.html" {
			return err
		}
		base, err := url.Parse("/help/" + strings.TrimSuffix(strings.TrimSuffix(name, ".html"), "index"))
		if err != nil {
			return err
		}
		page, status := get(base.Path)
		if status != 200 {
			t.Errorf("%s answers %d", base.Path, status)
		}
		for _, link := range page.links {
			u, err := base.Parse(link)
			if err != nil {
				t.Errorf("%s links to %q: %v", base.Path, link, err)
				continue
			}
			if u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/help") {
				continue // an external site, which the test cannot reach
			}
			target, status := get(u.Path)
			if status != 200 || u.Fragment != "" && !target.anchors[u.Fragment] {
				t.Errorf("%s links to %s, which answers %d or lacks the anchor", base.Path, link, status)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 100 {
		t.Errorf("followed links to %d pages", len(pages))
	}
}

var unsafeScript = regexp.MustCompile(`script-src [^;]*'unsafe`)

func TestAnswers(t *testing.T) {
	server := httpapitest.New(t)
	w := httpapitest.Get(server, "/help")
	if w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/help/" {
		t.Errorf("%d %s", w.Code, w.Header())
	}
	for address, want := range map[string]int{"/help/": 200, "/help/concepts/security": 200, "/help/none": 404, "/help/../../etc/passwd": 404, "/help/assets": 404, "/help/.gitignore": 404} {
		w := httpapitest.Get(server, address)
		if w.Code != want && w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect {
			t.Errorf("%s: %d, not %d", address, w.Code, want)
		}
		if csp := w.Header().Get("Content-Security-Policy"); w.Code == 200 && (!strings.Contains(csp, "script-src 'self' 'sha256-") || unsafeScript.MatchString(csp)) {
			t.Errorf("%s: the policy is %q", address, csp)
		}
	}
}
