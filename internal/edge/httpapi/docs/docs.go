// Package docs serves the OpenAPI document and a page that draws it. Neither needs anything
// from another host, so both work on a machine without a network.
//
// The page is Scalar's API reference (folder scalar), embedded as it was published.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// version is Scalar's. It is part of the script's path, so that browsers may keep the
// script for good.
const version = "1.72.1"

//go:embed index.html
var page string

//go:embed page.js
var setup []byte

//go:embed scalar/scalar-1.72.1.js.gz
var scalar []byte

// policy lets the page run its two scripts and ask this server; it allows no inline script
// and no other host. Styles need the nonce, but for style attributes, which the page has in
// each code example.
const policy = "default-src 'none'; script-src 'self'; style-src-elem 'nonce-NONCE'; style-src-attr 'unsafe-inline'; " +
	"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	html       = "text/html; charset=utf-8"
	javascript = "text/javascript; charset=utf-8"
)

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
		serve("/openapi.json", func(c *httpapi.Call) error { return write(c, "application/json", api.OpenAPI) }),
		serve("/docs", index),
		serve("/docs/page.js", func(c *httpapi.Call) error { return write(c, javascript, setup) }),
		serve("/docs/scalar-"+version+".js", script),
	}
}

func write(c *httpapi.Call, media string, body []byte) error {
	c.W.Header().Set("Content-Type", media)
	_, err := c.W.Write(body)
	return err
}

// index is the page with a nonce of its own.
func index(c *httpapi.Call) error {
	fill := strings.NewReplacer("NONCE", rand.Text(), "VERSION", version)
	h := c.W.Header()
	h.Set("Content-Security-Policy", fill.Replace(policy))
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	return write(c, html, []byte(fill.Replace(page)))
}

// script is Scalar, decompressed for a client that does not accept gzip.
func script(c *httpapi.Call) error {
	h := c.W.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", javascript)
	if strings.Contains(c.R.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, err := c.W.Write(scalar)
		return err
	}
	plain, err := gzip.NewReader(bytes.NewReader(scalar))
	if err != nil {
		return fmt.Errorf("decompress Scalar: %w", err)
	}
	_, err = io.Copy(c.W, plain)
	return err
}
