package execution

// Isolation says what an execution shares with others.
type Isolation string

const (
	// IsolationRun starts a new kernel for each execution.
	IsolationRun Isolation = "run"
	// IsolationKey lets consecutive executions of one key and environment reuse a kernel. Each gets
	// its own namespaces and files.
	IsolationKey Isolation = "key"
)

// Isolations lists every isolation, the default first.
var Isolations = []Isolation{IsolationRun, IsolationKey}

// Shares reports whether the job may reuse a kernel of its key's earlier jobs. A job that reaches
// beyond the sandbox or outlives its program gets its own kernel.
func (j *Job) Shares() bool {
	return j.Isolation == IsolationKey && j.Key != "" && j.Turn == "" && j.Thread == nil && len(j.Mounts) == 0 &&
		j.Web == nil && len(j.Skills) == 0 && len(j.Files) == 0 && !j.Input.Tool && !j.Input.Helper &&
		j.Permissions.Network.Blocked() && !j.Permissions.Restricts()
}
