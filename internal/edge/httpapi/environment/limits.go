package environment

import (
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
)

// Limits bound what one sandbox may use. Sizes are in bytes.
type Limits struct {
	CPU       float64 `json:"cpu" doc:"Cores."`
	Memory    int64   `json:"memory"`
	Processes int     `json:"processes"`
	OpenFiles int     `json:"open_files"`
	RootSize  int64   `json:"root_size"`
	TmpSize   int64   `json:"tmp_size"`
	ShmSize   int64   `json:"shm_size"`
	Inodes    int     `json:"inodes"`
}

// LimitsChange is what can be changed of limits. What is left out stays, or is the
// server's default in a new environment.
type LimitsChange struct {
	CPU       *float64 `json:"cpu,omitzero" maximum:"1024" doc:"Cores, above 0."`
	Memory    *int64   `json:"memory,omitzero" minimum:"67108864" doc:"Bytes. The three sizes live in it."`
	Processes *int     `json:"processes,omitzero" minimum:"1" maximum:"1048576"`
	OpenFiles *int     `json:"open_files,omitzero" minimum:"1" maximum:"1048576"`
	RootSize  *int64   `json:"root_size,omitzero" minimum:"1"`
	TmpSize   *int64   `json:"tmp_size,omitzero" minimum:"1"`
	ShmSize   *int64   `json:"shm_size,omitzero" minimum:"1"`
	Inodes    *int     `json:"inodes,omitzero" minimum:"1" maximum:"1073741824"`
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
