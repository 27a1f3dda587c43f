package skill

// Names of the built-in skills.
const (
	Planning   = "structured-planning"
	Reflection = "reflection-loop"
	State      = "long-running-state"
	Code       = "code-execution"
	Files      = "file-management"
	Browsing   = "web-browsing"
)

// builtIn are the skills of this server's own: what each does, and whether it is there.
var builtIn = map[string]struct {
	description string
	built       bool
}{
	Planning:   {"Makes a plan of steps before a task, follows it and keeps it up to date.", true},
	Reflection: {"Has each answer reviewed by a rubric, and improves it until the review passes.", true},
	State:      {"Keeps a state document through turns and restarts.", true},
	Code:       {"Runs code in the sandbox, looks at what it says, and mends what fails.", true},
	Files:      {"Reads, writes and organizes files in the sandbox.", false},
	Browsing:   {"Reads pages of the web with a browser.", false},
}
