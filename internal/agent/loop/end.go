package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/core/run"
)

// endTime bounds ending the calls of a process that is gone.
const endTime = 30 * time.Second

// made notes that this process makes a call, or collects its outcome: it does not return
// from that before the call has ended.
func (d *drive) made(number int) {
	if d.mine == nil {
		d.mine = map[int]bool{}
	}
	d.mine[number] = true
}

// endOthers ends the calls that a process that is gone has left under way, as the run ends
// without their outcomes.
func (d *drive) endOthers() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), endTime)
	defer cancel()
	for _, p := range d.state.Cut() {
		if d.mine[p.Number] || p.Unclaimed {
			continue
		}
		c, out, err := d.endCall(ctx, &p)
		if err != nil {
			return err
		}
		if out != nil {
			d.cutOff(c, out)
		}
		if c != nil {
			d.made(p.Number)
		}
	}
	return nil
}

// endPaused ends what calls keep whose work waits for the client, as the run ends otherwise than to
// wait, too. It was charged when it came to wait.
func (d *drive) endPaused(e *run.End) error {
	if e.Status == run.RequiresAction {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), endTime)
	defer cancel()
	for _, p := range d.state.Paused() {
		if _, _, err := d.endCall(ctx, &p); err != nil {
			return err
		}
	}
	return nil
}

// endCall has the handler of a call end it. The Call is nil where there is nothing to end.
func (d *drive) endCall(ctx context.Context, p *run.Pending) (*Call, *Outcome, error) {
	h, ok := d.handler(p).(Ender)
	if !ok {
		return nil, nil, nil
	}
	c := &Call{Run: &d.run, Number: p.Number, Call: *p.Call, Begun: p.Begun, Request: d.state.Request, Tool: p.Tool, Resumes: p.Resumes}
	it, err := d.show(p, c)
	if err != nil {
		return nil, nil, nil // it was not made
	}
	c.Item = it
	out, err := h.End(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("end call %d of the run: %w", p.Number, err)
	}
	return c, out, nil
}
