package httpapi

import (
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

// docs is a page that draws /openapi.json. It needs nothing from elsewhere, so
// it works on a machine without a network.
//
//go:embed docs
var docs embed.FS

// docsPolicy lets the page load its own files and nothing else.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func docsRoutes(methods []string) []route {
	serve := func(file string) handler {
		return func(w http.ResponseWriter, _ *http.Request) error {
			page, err := fs.ReadFile(docs, "docs/"+file)
			if err != nil {
				return err
			}
			h := w.Header()
			h.Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("Referrer-Policy", "no-referrer")
			_, err = w.Write(page)
			return err
		}
	}
	return []route{
		{methods, "/docs", serve("index.html")},
		{methods, "/docs/page.js", serve("page.js")},
		{methods, "/docs/page.css", serve("page.css")},
	}
}
