// Package doctor checks the prerequisites of a server on a machine and explains how to fix each problem.
package doctor

import (
	"context"
	"fmt"
	"slices"
)

// Level is how much a finding matters.
type Level string

const (
	OK      Level = "ok"
	Warning Level = "warning" // works, with less
	Failed  Level = "failed"  // the server cannot work
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`        // what was seen
	Fix    string `json:"fix,omitempty"` // what to do about it; empty when OK
}

func ok(check, format string, args ...any) Finding {
	return Finding{Check: check, Level: OK, Detail: fmt.Sprintf(format, args...)}
}

// warning and failed take the observation and the fix.
func warning(check, detail, fix string) Finding { return Finding{check, Warning, detail, fix} }
func failed(check, detail, fix string) Finding  { return Finding{check, Failed, detail, fix} }

// Target describes the server that the machine will run.
type Target struct {
	DataDir string
	Gateway bool     // it runs no sandboxes
	Servers []Server // that it connects to
	Runtime string   // gvisor or oci
	Runsc   string   // path; may not exist
	OCI     string   // path or name
	Guest   string   // path; may not exist

	// Image describes the configured image, or says why there is none.
	Image func() (string, error)
}

// Server is a server that Atoll connects to.
type Server struct {
	Setting string // that names it
	URLs    string // separated by commas
}

// Examine runs the checks of a Target.
func Examine(ctx context.Context, t Target) []Finding {
	var servers []Finding
	for _, s := range t.Servers {
		servers = append(servers, reachable(ctx, s))
	}
	if t.Gateway {
		return append([]Finding{ok("role", "a gateway, which runs no sandboxes"), disk(t.DataDir)}, servers...)
	}
	return slices.Concat([]Finding{kernel(), userNamespaces(ctx, t)}, subordinateIDs(), []Finding{
		cgroups(),
		network(),
		device("fuse", "/dev/fuse", "storage mounts need it: modprobe fuse, and in a container pass --device /dev/fuse"),
		disk(t.DataDir),
		runtimeBinary(ctx, t),
		guestBinary(t.Guest),
		image(t.Image),
	}, servers)
}

// Healthy reports whether no check failed.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Level == Failed {
			return false
		}
	}
	return true
}
