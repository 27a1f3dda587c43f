package packages

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/guest/wire"
)

// The trees of Debian's archive, by the first part of their paths.
const (
	debianTree   = "debian"
	securityTree = "debian-security"
)

// maxPath bounds the path of a file in the archive, in bytes.
const maxPath = 1024

// archiveName is a part of a path in the archive: no part begins with a dot.
var archiveName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+~@-]*$`)

// archive passes on a file of Debian's archive. apt asks for it as it asks a proxy,
// by the whole URL that the image's list of sources names, so that images keep
// their lists. It checks signatures by itself.
func (m *Mirror) archive(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "this server passes on files of Debian's archive alone", http.StatusMethodNotAllowed)
		return
	}
	tree, file, ok := archivePath(r.URL)
	if !ok || !slices.Contains(m.cfg.Hosts, strings.ToLower(r.URL.Host)) {
		http.Error(w, "this is no file of Debian's archive", http.StatusForbidden)
		return
	}
	if name, ok := archivePackage(file); ok && !m.cfg.Allowed.allows(Apt, requirement.Normal(Apt, name)) {
		http.Error(w, fmt.Sprintf("%s is not among the packages that this server allows", name), http.StatusForbidden)
		return
	}
	m.pass(w, r, within(m.trees[tree], file))
}

// archivePath reads the URL of a file: its tree, and the path in there, which is
// of an index ("dists/...") or of a package ("pool/...").
func archivePath(u *url.URL) (tree, file string, ok bool) {
	if u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || len(u.Path) > maxPath {
		return "", "", false
	}
	tree, file, ok = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	parts := strings.Split(file, "/")
	if !ok || tree != debianTree && tree != securityTree || len(parts) < 2 || parts[0] != "dists" && parts[0] != "pool" {
		return "", "", false
	}
	for _, p := range parts {
		if !archiveName.MatchString(p) {
			return "", "", false
		}
	}
	return tree, file, true
}

// archivePackage is the package that a file is of: "hello" for hello_2.10-3_amd64.deb.
// An index is of none.
func archivePackage(file string) (name string, ok bool) {
	name, _, _ = strings.Cut(path.Base(file), "_")
	return name, strings.HasPrefix(file, "pool/")
}

// within is a file's URL in a tree. A plus sign is written as %2B, as apt does,
// because buckets take a plain one for a space.
func within(tree *url.URL, file string) *url.URL {
	u := tree.JoinPath(file)
	u.RawPath = strings.ReplaceAll(u.EscapedPath(), "+", "%2B")
	return u
}

// aptSettings has apt ask the Mirror in place of the archive's public hosts. Sources
// elsewhere, and those by HTTPS, stay as they are.
func (m *Mirror) aptSettings() []byte {
	var b strings.Builder
	for _, host := range m.cfg.Hosts {
		fmt.Fprintf(&b, "Acquire::http::Proxy::%s \"%s/\";\nAcquire::https::Proxy::%s \"DIRECT\";\n", host, m.cfg.Base, host)
	}
	return []byte(b.String())
}

// Files are those that a sandbox must find in the guest's folder, by name.
func (m *Mirror) Files() map[string][]byte {
	if m.cfg.Kind != Apt {
		return nil
	}
	return map[string][]byte{wire.AptFile: m.aptSettings()}
}
