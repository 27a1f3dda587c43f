package main

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// bench is what the cases share.
type bench struct {
	rig   *rig.Rig
	quick bool
	parts []string // to measure of groups that have some; all if there are none
}

// group is a set of cases that are measured together.
type group struct {
	name, about string
	run         func(context.Context, *bench) ([]report.Row, error)
	stock       bool // its baseline is gVisor's own runsc
}

// groups is every case, in the order of the table.
var groups = []group{
	{"warm", "executions over HTTP in warm sandboxes, beside the bare interpreters", warm, false},
	{"rate", "executions over HTTP at a steady rate", rate, false},
	{"calls", "executions over HTTP by curls that come one after the other", calls, false},
	{"cold", "executions over HTTP with an empty pool, beside runsc do", cold, true},
	{"load", "sustained executions and bursts, beside loops of runsc do", load, true},
	{"memory", "memory of idle pooled sandboxes", memory, false},
	{"http", "the HTTP layer alone", httpLayer, false},
	{"stream", "output on its way from program to client", stream, false},
	{"records", "recording executions, and finding them", records, false},
	{"connect", "making sandboxes with a network, beside those without", connected, false},
	{"threads", "home directories: taken, saved, restored from a bucket", threads, false},
	{"network", "TCP through a sandbox's network, beside loopback", network, false},
	{"sandboxes", "named sandboxes: their tools, contexts, previews, sleep and copies", named, true},
	{"responses", "responses of a scripted model, beside the provider asked straight", responses, false},
	{"sessions", "sessions with an agent of a scripted model, beside the same as responses", sessions, false},
	{"gojudge", "go-judge beside the bare interpreter", goJudge, false},
}

func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

var (
	pythonHello = rig.Program{Language: execution.Python, Code: "print(1)", Want: "1\n"}
	pandas      = rig.Program{Language: execution.Python, Code: "import pandas; print(pandas.__version__)"}
	nodeHello   = rig.Program{Language: execution.Node, Code: "console.log(1)", Want: "1\n"}
	bashHello   = rig.Program{Language: execution.Bash, Code: "echo 1", Want: "1\n"}
)

// count is how many samples to take where a full run takes n.
func (b *bench) count(n int) int {
	if b.quick {
		return max(n/10, 1)
	}
	return n
}

// window is how long to measure where a full run takes d.
func (b *bench) window(d time.Duration) time.Duration {
	if b.quick {
		return max(d/10, 3*time.Second)
	}
	return d
}

// wait sleeps, unless ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
