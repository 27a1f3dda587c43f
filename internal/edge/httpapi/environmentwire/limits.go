// Package environmentwire defines the JSON of an environment's limits, permissions and packages.
// The APIs of environments and of sandboxes share it.
package environmentwire

import (
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Limits bound what one sandbox may use. Sizes are in bytes.
type Limits struct {
	CPU       float64 `json:"cpu" doc:"Cores."`
	Memory    int64   `json:"memory" doc:"Bytes of memory."`
	Processes int     `json:"processes" doc:"Processes and threads at the same time."`
	OpenFiles int     `json:"open_files" doc:"Files that one program may have open."`
	RootSize  int64   `json:"root_size" doc:"Bytes that may be written to the root file system, which is in memory."`
	TmpSize   int64   `json:"tmp_size" doc:"Bytes that may be written to /tmp, which is in memory."`
	ShmSize   int64   `json:"shm_size" doc:"Bytes of /dev/shm, which is in memory."`
	Inodes    int     `json:"inodes" doc:"Files and folders together that it may make."`
}

// LimitsChange is a change of limits. Omitted fields stay unchanged, or
// get the server's default in a new environment.
type LimitsChange struct {
	CPU       *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, above 0."`
	Memory    *int64   `json:"memory,omitzero" minimum:"67108864" doc:"Bytes. The three sizes live in it."`
	Processes *int     `json:"processes,omitzero" minimum:"1" maximum:"1048576" doc:"Processes and threads at the same time."`
	OpenFiles *int     `json:"open_files,omitzero" minimum:"1" maximum:"1048576" doc:"Files that one program may have open."`
	RootSize  *int64   `json:"root_size,omitzero" minimum:"1" doc:"Bytes that may be written to the root file system, which is in memory."`
	TmpSize   *int64   `json:"tmp_size,omitzero" minimum:"1" doc:"Bytes that may be written to /tmp, which is in memory."`
	ShmSize   *int64   `json:"shm_size,omitzero" minimum:"1" doc:"Bytes of /dev/shm, which is in memory."`
	Inodes    *int     `json:"inodes,omitzero" minimum:"1" maximum:"1073741824" doc:"Files and folders together that it may make."`
}

// Domain gives the tenant package's form. l may be nil.
func (l *LimitsChange) Domain() tenant.LimitsChange {
	if l == nil {
		return tenant.LimitsChange{}
	}
	return tenant.LimitsChange{
		CPU: l.CPU, Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles,
		Root: l.RootSize, Tmp: l.TmpSize, Shm: l.ShmSize, Inodes: l.Inodes,
	}
}

// LimitsOf renders limits.
func LimitsOf(l runtime.Limits) Limits {
	return Limits{l.CPU, l.Memory, l.Processes, l.OpenFiles, l.Root, l.Tmp, l.Shm, l.Inodes}
}
