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
	idleTime = 20 * time.Second // over which processor time is counted, in steps of 10 ms
)

// sleepers measures what sandboxes that sleep on disk cost the server.
func (p *pool) sleepers(ctx context.Context, b *bench) error {
	count := b.count(200)
	if err := p.clear(ctx); err != nil {
		return err
	}
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
	var made []member
	for len(made) < count {
		more, err := p.litter(ctx, min(litter, count-len(made)))
		if err != nil {
			return err
		}
		made = append(made, more...)
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
	return p.remove(ctx, made)
}

// clear deletes what earlier cases made: a sandbox that runs costs the server
// something, and that would be measured too.
func (p *pool) clear(ctx context.Context) error {
	all, err := p.members(ctx, http.MethodGet, "/v1/sandboxes?session="+session)
	if err != nil {
		return err
	}
	return p.remove(ctx, all)
}

// member is a sandbox of the pool.
type member struct {
	ID string `json:"sandbox_id"`
}

// members makes a call whose answer lists sandboxes.
func (p *pool) members(ctx context.Context, method, path string) ([]member, error) {
	answer, err := p.Call(ctx, method, path, nil)
	if err != nil {
		return nil, err
	}
	var out struct{ Data []member }
	err = json.Unmarshal(answer, &out)
	return out.Data, err
}

func (p *pool) remove(ctx context.Context, all []member) error {
	for _, sb := range all {
		if _, err := p.Call(ctx, http.MethodDelete, "/v1/sandboxes/"+sb.ID, nil); err != nil {
			return err
		}
	}
	return nil
}

// litter makes copies of the sleeper, and has them sleep.
func (p *pool) litter(ctx context.Context, count int) ([]member, error) {
	made, err := p.members(ctx, http.MethodPost, fmt.Sprintf("/v1/sandboxes/sleeper/fork?count=%d&session=%s", count, session))
	if err != nil {
		return nil, err
	}
	for _, sb := range made {
		if _, err := p.Call(ctx, http.MethodPost, "/v1/sandboxes/"+sb.ID+"/sleep", nil); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// idle is the processor time that the server takes without requests.
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
