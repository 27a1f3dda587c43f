// Package doctor looks at a machine and says what it lacks for running
// sandboxes, and how to mend it.
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
	Failed  Level = "failed"  // sandboxes cannot be made
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

// warning and failed take what was seen and how to mend it.
func warning(check, detail, fix string) Finding { return Finding{check, Warning, detail, fix} }
func failed(check, detail, fix string) Finding  { return Finding{check, Failed, detail, fix} }

// Target is what the machine is to be good for.
type Target struct {
	DataDir string
	Runtime string // gvisor or oci
	Runsc   string // path; may not exist
	OCI     string // path or name
	Guest   string // path; may not exist

	// Image describes the configured image, or says why there is none.
	Image func() (string, error)
}

// Examine runs every check, in the order a reader wants them.
func Examine(ctx context.Context, t Target) []Finding {
	return slices.Concat([]Finding{kernel(), userNamespaces(ctx, t)}, subordinateIDs(), []Finding{
		cgroups(),
		network(),
		device("fuse", "/dev/fuse", "storage mounts need it: modprobe fuse, and in a container pass --device /dev/fuse"),
		disk(t.DataDir),
		runtimeBinary(ctx, t),
		guestBinary(t.Guest),
		image(t.Image),
	})
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
