package execution

import "time"

// Request asks for one execution. Validate it before use.
type Request struct {
	TraceID  string // set by the caller's edge, unique
	Code     string
	Language Language
	Timeout  time.Duration
	Env      map[string]string
	Metadata map[string]string
}
