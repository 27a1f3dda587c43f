package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// Env is the environment of programs in the image.
func Env() map[string]string {
	return map[string]string{
		"PATH": runtime.Home + "/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG": "C.UTF-8",
	}
}

// Preloads are the Python modules worth importing ahead.
func Preloads() []string { return []string{"numpy", "pandas"} }

// texts are small files that the image gets, whatever the packages or this
// machine put there.
var texts = map[string]string{
	"/etc/hostname":    "atoll\n",
	"/etc/hosts":       "127.0.0.1 localhost atoll\n::1 localhost\n",
	"/etc/resolv.conf": "",
	"/etc/machine-id":  "",
	// A mirror's address may hold a password, so apt asks the public archive, at the
	// host that the preset of network rules opens. What it brings is signed.
	"/etc/apt/sources.list": "",
	"/etc/apt/sources.list.d/debian.sources": "Types: deb\nURIs: http://" + tenant.PresetHosts("debian")[0] + "/debian\nSuites: " + Suite +
		"\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
	"/etc/apt/apt.conf.d/90atoll": aptSettings,
	// npm install -g works without root, and what it installs is on PATH.
	"/etc/npmrc":                "prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\n",
	modules + "/atoll_fonts.py": fontsModule,
	modules + "/atoll_web.py":   webModule,
	modules + "/perplexity.py":  searchModule,
}

// aptSettings are for apt as root of a sandbox: no second user, and as little as can
// be in the overlay, which is memory. Without them the lists alone take 150 MB.
const aptSettings = `APT::Sandbox::User "root";
APT::Keep-Downloaded-Packages "false";
Acquire::GzipIndexes "true";
Acquire::Languages "none";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
`

// dropped are folders with nothing to run in them.
var dropped = []string{"/var/cache/apt", "/var/lib/apt/lists", "/var/cache/debconf", "/var/log", "/boot", "/media", "/srv"}

// recipeVersion is raised when the code below changes what an image has.
const recipeVersion = 1

// Recipe is the same for images that are built the same way, but for the versions
// of their packages. with names extras.
func Recipe(with []string) string {
	h := sha256.New()
	of := []any{recipeVersion, Suite, packages, excluded, customize, texts, programs, dropped, tested, Env(), Preloads()}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(with))) {
		of = append(of, extras[name])
	}
	// Strings, slices and maps of them encode always, and maps in the order of keys.
	_ = json.NewEncoder(h).Encode(of)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Finish turns a tree that Bootstrap made into what the documentation
// promises.
func Finish(root *erofs.Node) error {
	for name, text := range texts {
		if err := tree.Put(root, name, erofs.NewFile(0o644, text)); err != nil {
			return err
		}
	}
	for name, text := range programs {
		if err := tree.Put(root, name, erofs.NewFile(0o755, text)); err != nil {
			return err
		}
	}
	for _, name := range dropped {
		tree.Remove(root, name)
	}
	for _, name := range []string{"/var/log", "/var/cache/apt/archives/partial", "/var/lib/apt/lists/partial"} {
		if _, err := tree.MkdirAll(root, name, 0o755); err != nil {
			return err
		}
	}
	pythons := 0
	lib, _, err := tree.Lookup(root, "/usr/lib")
	if err != nil {
		return fmt.Errorf("the packages' tree: %w", err)
	}
	for _, name := range lib.Names() {
		if strings.HasPrefix(name, "python3.") {
			tree.Remove(root, path.Join("/usr/lib", name, "EXTERNALLY-MANAGED"))
			pythons++
		}
	}
	if pythons == 0 {
		return fmt.Errorf("the packages' tree has no Python in /usr/lib")
	}
	dropTests(root)
	return nil
}

// tested are libraries that bring their own test suites, 110 MB together.
var tested = []string{"matplotlib", "mpl_toolkits", "numpy", "pandas", "sympy", "mpmath"}

func dropTests(root *erofs.Node) {
	for _, name := range tested {
		lib, _, err := tree.Lookup(root, path.Join("/usr/lib/python3/dist-packages", name))
		if err != nil || !lib.IsDir() {
			continue
		}
		for stack := []*erofs.Node{lib}; len(stack) > 0; {
			dir := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for name, n := range dir.Children {
				switch {
				case !n.IsDir():
				case name == "tests":
					delete(dir.Children, name)
				default:
					stack = append(stack, n)
				}
			}
		}
	}
}
