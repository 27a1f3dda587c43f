package fetch

import (
	"net/url"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/atoll-run/atoll/internal/core/web"
)

// Bounds of the trees that are searched for their article, whose work grows faster than
// they do: with the nodes, and with the bytes of text times the elements around them. The
// whole text of a larger page is taken.
const (
	maxNodes = 20_000
	maxDepth = 64 << 20 // bytes times elements
)

// readHTML takes the article of a page, or its whole text where it has none.
func readHTML(p *web.Page, text string, at *url.URL) {
	if doc, err := html.Parse(strings.NewReader(text)); err == nil && isSmall(doc) && article(p, doc, at) {
		return
	}
	p.Title, p.Text = plain(text)
}

// isSmall reports whether a tree, which html.Parse has made, is within the bounds.
func isSmall(doc *html.Node) bool {
	nodes, work := 0, 0
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) { // html.Parse refuses what is deeper than 512
		nodes++
		if n.Type == html.TextNode {
			work += len(n.Data) * depth
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, depth+1)
		}
	}
	walk(doc, 0)
	return nodes <= maxNodes && work <= maxDepth
}

// article reports whether a page has one, and takes it.
func article(p *web.Page, doc *html.Node, at *url.URL) (ok bool) {
	defer func() {
		if recover() != nil { // the page is a stranger's, and so is the library
			ok = false
		}
	}()
	a, err := readability.FromDocument(doc, at)
	if err != nil || a.Node == nil {
		return false
	}
	var out strings.Builder
	if err := a.RenderText(&out); err != nil || strings.TrimSpace(out.String()) == "" {
		return false
	}
	p.Title, p.Text = web.Line(a.Title(), maxTitle), web.Lines(out.String())
	if t, err := a.PublishedTime(); err == nil {
		p.Date = t
	}
	if t, err := a.ModifiedTime(); err == nil {
		p.Updated = t
	}
	return true
}

// maxTitle is the most characters of a title.
const maxTitle = 500

// plain is the title and the whole text of a page, without a tree.
func plain(text string) (title, whole string) {
	var out strings.Builder
	hidden, inTitle := atom.Atom(0), false
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return web.Line(title, maxTitle), web.Lines(out.String())
		case html.StartTagToken, html.EndTagToken:
			name, _ := z.TagName()
			a := atom.Lookup(name)
			switch a {
			case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg:
				if kind == html.StartTagToken && hidden == 0 {
					hidden = a
				} else if kind == html.EndTagToken && hidden == a {
					hidden = 0
				}
			case atom.Title:
				inTitle = kind == html.StartTagToken && title == ""
			case atom.P, atom.Div, atom.Br, atom.Li, atom.Tr, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Section, atom.Article, atom.Blockquote:
				out.WriteByte('\n')
			case atom.Td, atom.Th:
				out.WriteByte(' ')
			}
		case html.TextToken:
			switch {
			case hidden != 0:
			case inTitle:
				title += string(z.Text())
			default:
				out.Write(z.Text())
			}
		}
	}
}
