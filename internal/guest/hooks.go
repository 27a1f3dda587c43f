// Package guest embeds the hooks, which start interpreters in sandboxes. The packages below it are
// the programs inside a sandbox and the host's clients for them.
package guest

import "embed"

//go:embed hook
var hookFS embed.FS

// Files returns the hook files by name, which the guest expects beside its own
// binary in sandbox.GuestDir, readable to everyone.
func Files() map[string][]byte {
	files := make(map[string][]byte)
	entries, err := hookFS.ReadDir("hook")
	if err != nil {
		panic(err) // embedded at build time
	}
	for _, e := range entries {
		data, err := hookFS.ReadFile("hook/" + e.Name())
		if err != nil {
			panic(err)
		}
		files[e.Name()] = data
	}
	return files
}
