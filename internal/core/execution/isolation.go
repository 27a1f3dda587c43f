package execution

// Isolation says what an execution shares with others.
type Isolation string

const (
	// IsolationRun is a kernel for each execution.
	IsolationRun Isolation = "run"
	// IsolationKey lets executions of one key and environment have a kernel after one
	// another, each with namespaces and files of its own.
	IsolationKey Isolation = "key"
)

// Isolations are all of them, the default first.
var Isolations = []Isolation{IsolationRun, IsolationKey}

// Shares reports whether the job may have a kernel that others of its key had before.
// What reaches beyond the sandbox or outlives the program takes one of its own.
func (j *Job) Shares() bool {
	return j.Isolation == IsolationKey && j.Key != "" && j.Turn == "" && j.Thread == nil && len(j.Mounts) == 0 &&
		j.Web == nil && len(j.Skills) == 0 && len(j.Files) == 0 && !j.Input.Tool && !j.Input.Helper &&
		j.Permissions.Network.Blocked() && !j.Permissions.Restricts()
}
