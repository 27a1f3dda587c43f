package usage

import "time"

// Usage is what a tenant has used.
type Usage struct {
	Since   time.Time    `json:"since" doc:"The beginning of the time that is shown."`
	Before  time.Time    `json:"before" doc:"The end of the time that is shown, which is not in it."`
	Days    []UsageDay   `json:"days" doc:"One entry for each day with use, in UTC."`
	Groups  []UsageGroup `json:"groups,omitzero" doc:"With group_by: the usage of each agent or session, the most expensive first; at most 1,000. Includes whole days."`
	Totals  UsageAmounts `json:"totals" doc:"Totals of the days above; calls counts only calls of interfaces."`
	Month   UsageMonth   `json:"month" doc:"The current calendar month in UTC."`
	Outputs UsageOutputs `json:"outputs" doc:"Storage that ended executions and responses use now."`
}

// UsageDay is what was used on one day by one interface, of one model or of one tool.
type UsageDay struct {
	Date   string `json:"date" format:"date" doc:"In UTC."`
	Source string `json:"source" doc:"The interface: execute, execute_code, sandbox for the time that named sandboxes ran, or what audit rows call a use of one, such as shell. Of responses: model, tool, or sandbox_window for windows of 20 minutes; the executions of their sandbox are response."`
	Name   string `json:"name" doc:"Of the model or tool; empty for other sources."`
	UsageAmounts
}

// UsageGroup is the usage of an agent or one of its sessions.
type UsageGroup struct {
	AgentID   string `json:"agent_id" doc:"The id of the agent; for execute_code, the caller's name for it."`
	SessionID string `json:"session_id" doc:"The id of the session; empty with group_by agent, and for usage outside sessions."`
	UsageAmounts
}

// UsageAmounts are amounts of use.
type UsageAmounts struct {
	Calls      int64   `json:"calls" doc:"How many calls were made."`
	Sessions   int64   `json:"sessions" doc:"Sandboxes that were started."`
	Seconds    float64 `json:"seconds" doc:"Wall clock, in a sandbox."`
	CPUSeconds float64 `json:"cpu_seconds" doc:"Seconds times the cores that the sandbox had."`
	GiBSeconds float64 `json:"gib_seconds" doc:"Seconds times the GiB of memory that it had."`
	BytesOut   int64   `json:"bytes_out" doc:"To the network."`
	Credits    float64 `json:"credits" doc:"Charge in credits."`

	InputTokens      int64   `json:"input_tokens" doc:"With those of the caches."`
	CacheReadTokens  int64   `json:"cache_read_tokens" doc:"Of the input: read from the provider's cache."`
	CacheWriteTokens int64   `json:"cache_write_tokens" doc:"Of the input: written to it."`
	OutputTokens     int64   `json:"output_tokens" doc:"With those of reasoning."`
	ReasoningTokens  int64   `json:"reasoning_tokens" doc:"Of the output."`
	EstimatedTokens  int64   `json:"estimated_tokens" doc:"The part of the input and output that Atoll estimated, because the provider did not report it."`
	Cost             float64 `json:"cost" doc:"US dollars."`
}

// UsageMonth is the state of a tenant's budgets.
type UsageMonth struct {
	Credits    float64   `json:"credits" doc:"Used so far."`
	Budget     *float64  `json:"budget" doc:"In credits; null for none."`
	Cost       float64   `json:"cost" doc:"Cost of responses so far, in US dollars."`
	CostBudget *float64  `json:"cost_budget" doc:"In US dollars; null for none."`
	ResetsAt   time.Time `json:"resets_at" doc:"When the month ends."`
}

// UsageOutputs is what a tenant's ended executions and responses keep.
type UsageOutputs struct {
	Bytes    int64      `json:"bytes" doc:"Of their output, of the files they gave back, and of what responses said."`
	Limit    *int64     `json:"limit" doc:"max_outputs of the plan; null for none."`
	ResetsAt *time.Time `json:"resets_at" doc:"When a part of it will have expired; null while nothing is kept. Deleting executions and responses makes room at once."`
}
