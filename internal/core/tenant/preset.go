package tenant

// Preset is a name for the hosts that a package manager needs.
type Preset struct {
	Name  string
	Hosts []string // as in NetworkPolicy.AllowedHosts
}

// Presets lists the package registries that a network policy can be opened for by
// name: the public hosts that their package managers ask when nothing else is configured.
// A mirror is allowed by its host. No name here can be that of a host: none has a dot.
var Presets = []Preset{
	{"pypi", []string{"pypi.org", "files.pythonhosted.org"}},
	{"npm", []string{"registry.npmjs.org"}},
	{"debian", []string{"deb.debian.org", "security.debian.org"}},
	{"go", []string{"proxy.golang.org", "sum.golang.org"}},
	{"crates", []string{"crates.io", "index.crates.io", "static.crates.io"}},
	{"rubygems", []string{"rubygems.org", "index.rubygems.org"}},
	{"maven", []string{"repo.maven.apache.org", "repo1.maven.org"}},
}

// PresetHosts returns the hosts of a preset, nil where there is none of that name.
func PresetHosts(name string) []string {
	for _, p := range Presets {
		if p.Name == name {
			return p.Hosts
		}
	}
	return nil
}
