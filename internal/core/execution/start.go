package execution

import "slices"

// Start says whether an execution waited for its sandbox to be made.
type Start string

const (
	StartWarm Start = "warm" // the sandbox was ready before the request came
	StartCold Start = "cold" // the sandbox was made for the request
)

// StartReason says why a start was warm or cold.
type StartReason string

const (
	StartPooled    StartReason = "pooled"     // warm: the pool had a sandbox ready
	StartTurn      StartReason = "turn"       // warm: an earlier job of the same turn made the sandbox
	StartPoolEmpty StartReason = "pool_empty" // cold: every sandbox of this kind was claimed, or none is kept
	StartFirstUse  StartReason = "first_use"  // cold: this environment had not been used before
	StartPoolOff   StartReason = "pool_off"   // cold: pool_size is 0
	StartStorage   StartReason = "storage"    // cold: storage had to be mounted before the sandbox ran
)

// StartReasons lists every StartReason.
var StartReasons = []StartReason{StartPooled, StartTurn, StartPoolEmpty, StartFirstUse, StartPoolOff, StartStorage}

var warmReasons = []StartReason{StartPooled, StartTurn}

// Start returns the kind of start that r explains, "" for no reason.
func (r StartReason) Start() Start {
	switch {
	case r == "":
		return ""
	case slices.Contains(warmReasons, r):
		return StartWarm
	}
	return StartCold
}
