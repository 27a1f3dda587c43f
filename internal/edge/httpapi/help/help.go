// Package help serves the documentation at /help. The pages load nothing from another host.
package help

import (
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/atoll-run/atoll/api/helpsite"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// policy allows the scripts of the site: its files, and the inline scripts that SCRIPTS names by
// their hashes. Code examples carry their colours in style attributes.
const policy = "default-src 'none'; script-src 'self'SCRIPTS; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Operations are the pages of the site. The OpenAPI document does not list them.
func Operations() []httpapi.Operation {
	serve := func(path string, f func(*httpapi.Call) error) httpapi.Operation {
		return httpapi.Operation{Method: http.MethodGet, Path: path, Access: httpapi.Public, Serve: httpapi.Writes(f)}
	}
	return []httpapi.Operation{
		serve("/help", func(c *httpapi.Call) error {
			http.Redirect(c.W, c.R, "/help/", http.StatusPermanentRedirect)
			return nil
		}),
		serve("/help/{path...}", file),
	}
}

// file answers with a file of the site. Links have no ".html".
func file(c *httpapi.Call) error {
	name, data, found, err := helpsite.Find(c.R.PathValue("path"))
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !found {
		status = http.StatusNotFound
	}
	return write(c, name, status, data)
}

func write(c *httpapi.Call, name string, status int, data []byte) error {
	h := c.W.Header()
	kind := mime.TypeByExtension(path.Ext(name))
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.Set("Content-Type", kind)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "assets/") { // names contain a hash of the contents
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if path.Ext(name) == ".html" {
		allowed, err := helpsite.Scripts()
		if err != nil {
			return err
		}
		h.Set("Content-Security-Policy", strings.Replace(policy, "SCRIPTS", allowed, 1))
	}
	c.W.WriteHeader(status)
	_, err := c.W.Write(data)
	return err
}
