package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

const (
	litter   = 10               // copies made and put to sleep at a time: those awake take memory
	idleTime = 10 * time.Second // over which processor time is counted
)

// sleepers measures what sandboxes that sleep on disk cost the server.
func (p *pool) sleepers(ctx context.Context, b *bench) error {
	count := b.count(200)
	if err := p.create(ctx, "sleeper", nil); err != nil {
		return err
	}
	if err := p.sleep(ctx, "sleeper"); err != nil {
		return err
	}
	idle, err := p.idle(ctx)
	if err != nil {
		return err
	}
	before, err := p.RSS()
	if err != nil {
		return err
	}
	var ids []string
	for len(ids) < count {
		made, err := p.litter(ctx, min(litter, count-len(ids)))
		if err != nil {
			return err
		}
		ids = append(ids, made...)
	}
	used, err := p.idle(ctx)
	if err != nil {
		return err
	}
	after, err := p.RSS()
	if err != nil {
		return err
	}
	p.add(report.Row{
		Case: fmt.Sprintf("memory of the server for each of %d sleeping sandboxes", count), Unit: "MB", Must: report.AtMost(1),
		Measured: float64(after-before) / 1e6 / float64(count),
	})
	p.add(report.Row{
		Case: fmt.Sprintf("processor time of the server, %d sandboxes asleep", count), Unit: "ms/s", Must: report.AtMost(2),
		Measured: report.Milliseconds(used-idle) / idleTime.Seconds(),
		Note:     fmt.Sprintf("beside the %.1f ms/s that it takes with one", report.Milliseconds(idle)/idleTime.Seconds()),
	})
	for _, id := range ids {
		if _, err := p.Call(ctx, http.MethodDelete, "/v1/sandboxes/"+id, nil); err != nil {
			return err
		}
	}
	return nil
}

// litter makes copies of the sleeper, and has them sleep.
func (p *pool) litter(ctx context.Context, count int) (ids []string, err error) {
	answer, err := p.Call(ctx, http.MethodPost, fmt.Sprintf("/v1/sandboxes/sleeper/fork?count=%d&session=%s", count, session), nil)
	if err != nil {
		return nil, err
	}
	var out struct {
		Data []struct {
			ID string `json:"sandbox_id"`
		}
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, err
	}
	for _, sb := range out.Data {
		if _, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/"+sb.ID+"/sleep", nil); err != nil {
			return nil, err
		}
		ids = append(ids, sb.ID)
	}
	return ids, nil
}

// idle is the processor time that the server takes while nobody asks for anything.
func (p *pool) idle(ctx context.Context) (time.Duration, error) {
	if err := wait(ctx, stocked); err != nil { // for what it still had to do
		return 0, err
	}
	before, err := p.CPU()
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, idleTime); err != nil {
		return 0, err
	}
	after, err := p.CPU()
	return after - before, err
}
