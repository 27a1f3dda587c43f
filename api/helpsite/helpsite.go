// Package helpsite reads the documentation site. 'make docs' builds it from docs/ into an archive that
// is embedded.
package helpsite

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/core/fault"
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

// Find returns the file of a path and its name in the site, which may be path.html or
// path/index.html. For an unknown path it returns the page 404.html, and found is false.
func Find(at string) (name string, data []byte, found bool, err error) {
	site, err := site()
	if err != nil {
		return "", nil, false, err
	}
	at = path.Clean("/" + at)[1:]
	for _, name := range []string{at, at + ".html", path.Join(at, "index.html")} {
		data, err := fs.ReadFile(site, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || isFolder(site, name) {
			continue
		}
		return name, data, true, err
	}
	data, err = fs.ReadFile(site, "404.html")
	return "404.html", data, false, err
}

func isFolder(site fs.FS, name string) bool {
	st, err := fs.Stat(site, name)
	return err == nil && st.IsDir()
}

var inline = regexp.MustCompile(`(?s)<script(?: id="[^"]*")?>(.*?)</script>`)

// Scripts returns the sources of a policy for the inline scripts of all pages: " 'sha256-…'" for each.
var Scripts = sync.OnceValues(func() (string, error) {
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
