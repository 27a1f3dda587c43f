// Package docs serves the OpenAPI document and a page that shows it. Both need nothing
// from elsewhere, so they work on a machine without a network.
package docs

import (
	"embed"
	"mime"
	"net/http"
	"path"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

//go:embed index.html page.css page.js
var files embed.FS

// policy lets the page load its own files and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Operations are /docs and what it loads. They are not in the document themselves.
func Operations() []httpapi.Operation {
	serve := func(path string, f func(*httpapi.Call) error) httpapi.Operation {
		return httpapi.Operation{Method: http.MethodGet, Path: path, Access: httpapi.Public, Serve: httpapi.Writes(f)}
	}
	return []httpapi.Operation{
		serve("/{$}", func(c *httpapi.Call) error {
			http.Redirect(c.W, c.R, "/docs", http.StatusTemporaryRedirect)
			return nil
		}),
		serve("/openapi.json", func(c *httpapi.Call) error {
			c.W.Header().Set("Content-Type", "application/json")
			_, err := c.W.Write(api.OpenAPI)
			return err
		}),
		serve("/docs", file("index.html")), serve("/docs/page.js", file("page.js")), serve("/docs/page.css", file("page.css")),
	}
}

func file(name string) func(*httpapi.Call) error {
	return func(c *httpapi.Call) error {
		page, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		h := c.W.Header()
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		_, err = c.W.Write(page)
		return err
	}
}
