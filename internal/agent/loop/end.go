package loop

import (
	"context"
	"fmt"
	"time"
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
		h, ok := d.handler(&p).(Ender)
		if d.mine[p.Number] || p.Unclaimed || !ok {
			continue
		}
		c := &Call{Run: &d.run, Number: p.Number, Call: *p.Call, Begun: true, Request: d.state.Request, Tool: p.Tool, Resumes: p.Resumes}
		it, err := d.show(&p, c)
		if err != nil {
			continue // it was not made
		}
		c.Item = it
		out, err := h.End(ctx, c)
		if err != nil {
			return fmt.Errorf("end call %d of the run: %w", p.Number, err)
		}
		if out != nil {
			d.cutOff(c, out)
		}
		d.made(p.Number)
	}
	return nil
}
