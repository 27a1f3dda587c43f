package usage

import "time"

// Usage is what a tenant has used.
type Usage struct {
	Since   time.Time    `json:"since"`
	Before  time.Time    `json:"before"`
	Days    []UsageDay   `json:"days"`
	Totals  UsageAmounts `json:"totals" doc:"Of the days above."`
	Month   UsageMonth   `json:"month" doc:"The current calendar month in UTC."`
	Outputs UsageOutputs `json:"outputs" doc:"What ended executions keep now."`
}

// UsageDay is what was used on one day by one interface.
type UsageDay struct {
	Date   string `json:"date" format:"date" doc:"In UTC."`
	Source string `json:"source" doc:"The interface: execute, execute_code, sandbox for the time that named sandboxes ran, or what audit rows call a use of one, such as shell."`
	UsageAmounts
}

// UsageAmounts are amounts of use.
type UsageAmounts struct {
	Calls      int64   `json:"calls"`
	Sessions   int64   `json:"sessions" doc:"Sandboxes that were started."`
	Seconds    float64 `json:"seconds" doc:"Wall clock, in a sandbox."`
	CPUSeconds float64 `json:"cpu_seconds" doc:"Seconds times the cores that the sandbox had."`
	GiBSeconds float64 `json:"gib_seconds" doc:"Seconds times the GiB of memory that it had."`
	BytesOut   int64   `json:"bytes_out" doc:"To the network."`
	Credits    float64 `json:"credits"`
}

// UsageMonth is the state of a tenant's budget.
type UsageMonth struct {
	Credits  float64   `json:"credits" doc:"Used so far."`
	Budget   *float64  `json:"budget" doc:"null for none."`
	ResetsAt time.Time `json:"resets_at"`
}

// UsageOutputs is what a tenant's ended executions keep.
type UsageOutputs struct {
	Bytes    int64      `json:"bytes" doc:"Of their output, and of the files they gave back."`
	Limit    *int64     `json:"limit" doc:"max_outputs of the plan; null for none."`
	ResetsAt *time.Time `json:"resets_at" doc:"When a part of it will have expired; null while nothing is kept. Deleting executions makes room at once."`
}
