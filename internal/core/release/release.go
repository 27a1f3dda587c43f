// Package release knows the version of Atoll: one for the server, its HTTP API and the client
// libraries. The file VERSION holds it.
package release

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var file string

// Version is such as 0.1.0.
var Version = strings.TrimSpace(file)
