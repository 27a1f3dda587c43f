package main

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

// workTimes are how long the models take of agents that work side by side, in ms, and
// workName begins the agents' names.
var workTimes = []int{1000, 2000, 3000, 4000}

const workName = "worker"

// sessionHandoffs measures a turn whose agent hands work to others side by side, beside the same
// with the slowest of them alone. Each runs a program in the session's sandbox between two answers
// of its model.
func sessionHandoffs(ctx context.Context, b *bench, r *responding) error {
	var to []any
	for i := range workTimes {
		id, err := r.made(ctx, "/v1/agents", map[string]any{
			"name": "Worker", "slug": fmt.Sprint(workName, i), "model": map[string]string{"name": "scripted"}, "tools": sandboxTool,
		})
		if err != nil {
			return err
		}
		to = append(to, map[string]any{"agent_id": id, "name": fmt.Sprint(workName, i)})
	}
	lead, err := r.made(ctx, "/v1/agents", map[string]any{
		"name": "Lead", "model": map[string]string{"name": "scripted"}, "tools": sandboxTool, "handoffs": to, "multiagent": map[string]any{"parallel": true},
	})
	if err != nil {
		return err
	}
	turn := func(word string) (time.Duration, error) {
		session, err := r.session(ctx, lead)
		if err != nil {
			return 0, err
		}
		return r.say(ctx, session, word)
	}
	var all, slowest report.Sample
	for range b.count(10) {
		for _, of := range []struct {
			word string
			into *report.Sample
		}{{"fan", &all}, {"slowest", &slowest}} {
			took, err := turn(of.word)
			if err != nil {
				return err
			}
			*of.into = append(*of.into, took)
		}
	}
	r.add(report.Row{
		Case: fmt.Sprintf("a turn with %d agents side by side, p50", len(workTimes)), Unit: "ms", Must: report.AtMost(1.2),
		Measured: report.Milliseconds(all.Percentile(50)), Sample: all.Summary(),
		Baseline: report.Milliseconds(slowest.Percentile(50)), BaselineSample: slowest.Summary(), BaselineName: "with the slowest of them alone",
		Note: fmt.Sprintf("their models take %v ms, each with a program in the session's sandbox between two answers", workTimes),
	})
	return nil
}
