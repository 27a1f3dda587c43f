// Package usage is the ledger of what tenants have used, and its price.
package usage

import "time"

// Entry is what one call used, or a sandbox in some time.
type Entry struct {
	TraceID  string
	Tenant   string
	Key      string
	Source   string
	Agent    string  // that worked; "" for none
	Session  string  // of the agent; "" for none
	Seconds  float64 // wall clock, in a sandbox
	CPU      float64 // cores the sandbox had
	Memory   int64   // bytes the sandbox had
	BytesOut int64   // to the network
	Sessions int     // sandboxes begun: 0 for a further call of a turn
	Standing bool    // it is no call, but the time that a named sandbox has run
	Credits  float64
	At       time.Time
}

// Calls is how many calls e is.
func (e Entry) Calls() int {
	if e.Standing {
		return 0
	}
	return 1
}

// Prices say what use costs. The contract's credit is 60 seconds with one core
// and one GiB.
type Prices struct {
	CPUMinute float64 // credits for a core and a minute
	GiBMinute float64 // credits for a GiB of memory and a minute
	Call      float64 // credits for a call
	// Calls are credits for a call of a source that has a price of its own.
	Calls  map[string]float64
	GiBOut float64 // credits for a GiB sent to the network
}

// DefaultPrices add up to the contract's credit.
func DefaultPrices() Prices { return Prices{CPUMinute: 0.5, GiBMinute: 0.5} }

// Credits is the price of e.
func (p Prices) Credits(e Entry) float64 {
	minutes, gib := e.Seconds/60, float64(1<<30)
	call, own := p.Calls[e.Source]
	if !own {
		call = p.Call
	}
	return minutes*(e.CPU*p.CPUMinute+float64(e.Memory)/gib*p.GiBMinute) + float64(e.Calls())*call + float64(e.BytesOut)/gib*p.GiBOut
}
