package tenant

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Preset names the hosts that a package manager needs.
type Preset struct {
	Name  string
	Hosts []string // as in NetworkPolicy.AllowedHosts
}

// Presets lists the package registries that a network policy can allow by name, with the default
// public hosts of their package managers. To use a mirror, allow its host. Preset names contain no
// dot, so they never collide with host names.
var Presets = []Preset{
	{"pypi", []string{"pypi.org", "files.pythonhosted.org"}},
	{"npm", []string{"registry.npmjs.org"}},
	{"debian", []string{"deb.debian.org", "security.debian.org"}},
	{"go", []string{"proxy.golang.org", "sum.golang.org"}},
	{"crates", []string{"crates.io", "index.crates.io", "static.crates.io"}},
	{"rubygems", []string{"rubygems.org", "index.rubygems.org"}},
	{"maven", []string{"repo.maven.apache.org", "repo1.maven.org"}},
}

// PresetHosts returns the hosts of a preset; nil for an unknown name.
func PresetHosts(name string) []string {
	for _, p := range Presets {
		if p.Name == name {
			return p.Hosts
		}
	}
	return nil
}

// sites maps words that users mistake for host names to the intended hosts.
var sites = map[string]string{
	"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "huggingface": "huggingface.co", "docker": "registry-1.docker.io", "dockerhub": "registry-1.docker.io",
	"anaconda": "conda.anaconda.org", "conda": "conda.anaconda.org",
}

// presetsAlso maps other words for a preset to its name.
var presetsAlso = map[string]string{
	"pip": "pypi", "python": "pypi", "node": "npm", "npmjs": "npm", "yarn": "npm", "apt": "debian", "golang": "go", "cargo": "crates", "rust": "crates", "gem": "rubygems", "ruby": "rubygems", "java": "maven",
}

// shortHost returns an error text for a host without a dot, which no network rule can match, and
// suggests what the user may have meant; "" for any other host.
func shortHost(h string) string {
	if h == "*" || strings.ContainsAny(h, ".:/") {
		return ""
	}
	if _, err := netip.ParseAddr(h); err == nil {
		return ""
	}
	name := strings.ToLower(h)
	if known, ok := presetsAlso[name]; ok {
		name = known
	}
	if p := nearPreset(name); p != nil {
		return fmt.Sprintf("%.80q has no dot, so it is not a host name; did you mean the preset %s, which is %s?", h, p.Name, strings.Join(p.Hosts, ", "))
	}
	if site, ok := sites[name]; ok {
		return fmt.Sprintf("%.80q has no dot, so it is not a host name; did you mean %q?", h, site)
	}
	if name == "localhost" {
		return fmt.Sprintf("%q means the sandbox itself and needs no rule", h)
	}
	return fmt.Sprintf("%.80q has no dot, so it is not a host name; use a full name, such as \"%.80[1]s.com\", or add the address of your machine to allowed_cidrs", h)
}

// maxPresetTypo is the longest name that nearPreset compares, which limits the cost.
const maxPresetTypo = 16

// nearPreset returns the preset with the name or a similar one; nil if none is similar.
func nearPreset(name string) *Preset {
	for i := range Presets {
		if Presets[i].Name == name {
			return &Presets[i]
		}
	}
	best, least := -1, 3
	if len(name) > maxPresetTypo {
		return nil
	}
	for i, p := range Presets {
		if d := distance(name, p.Name); d < least && d < len(p.Name)/2+1 && d < len(name) {
			best, least = i, d
		}
	}
	if best < 0 {
		return nil
	}
	return &Presets[best]
}

// distance returns the number of edits that turn a into b: replacing, inserting or deleting a
// letter, or swapping two adjacent ones.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differs := 1
			if a[i-1] == b[j-1] {
				differs = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differs)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// checkNewHosts rejects new hosts without a dot. Hosts in had may stay, because earlier versions
// accepted them.
func checkNewHosts(list, had []string) error {
	for _, h := range list {
		if slices.Contains(had, h) {
			continue
		}
		if why := shortHost(h); why != "" {
			return invalid("permissions: network.allowed_hosts: %s", why)
		}
	}
	return nil
}
