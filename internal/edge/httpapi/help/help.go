// Package help serves the documentation at /help. 'make docs' builds the site from docs/ into
// an archive that is embedded. The pages load nothing from another host.
package help

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

//go:embed all:site
var embedded embed.FS

// archive is the site in the embedded folder.
const archive = "site/help.zip"

// site opens the archive.
var site = sync.OnceValues(func() (fs.FS, error) {
	data, err := embedded.ReadFile(archive)
	if err != nil {
		return nil, fault.New(fault.NotFound, "this build of Atoll has no documentation; build it with 'make docs build', or read the folder docs of the sources")
	}
	return zip.NewReader(bytes.NewReader(data), int64(len(data)))
})

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
	site, err := site()
	if err != nil {
		return err
	}
	name := path.Clean("/" + c.R.PathValue("path"))[1:]
	for _, candidate := range []string{name, name + ".html", path.Join(name, "index.html")} {
		data, err := fs.ReadFile(site, candidate)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || isFolder(site, candidate) {
			continue
		}
		if err != nil {
			return err
		}
		return write(c, candidate, http.StatusOK, data)
	}
	data, err := fs.ReadFile(site, "404.html")
	if err != nil {
		return err
	}
	return write(c, "404.html", http.StatusNotFound, data)
}

func isFolder(site fs.FS, name string) bool {
	st, err := fs.Stat(site, name)
	return err == nil && st.IsDir()
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
		allowed, err := scripts()
		if err != nil {
			return err
		}
		h.Set("Content-Security-Policy", strings.Replace(policy, "SCRIPTS", allowed, 1))
	}
	c.W.WriteHeader(status)
	_, err := c.W.Write(data)
	return err
}

var inline = regexp.MustCompile(`(?s)<script(?: id="[^"]*")?>(.*?)</script>`)

// scripts returns the sources of a policy for the inline scripts of all pages: " 'sha256-…'" for each.
var scripts = sync.OnceValues(func() (string, error) {
	site, err := site()
	if err != nil {
		return "", err
	}
	var sources []string
	err = fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		page, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		for _, m := range inline.FindAllSubmatch(page, -1) {
			sum := sha256.Sum256(m[1])
			sources = append(sources, " 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
		}
		return nil
	})
	slices.Sort(sources)
	return strings.Join(slices.Compact(sources), ""), err
})
