package jobs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
)

// takeUpBatch is how many jobs are looked at together.
const takeUpBatch = 1000

// takeUp makes jobs available that a killed process with our ID had under way,
// and ends its leadership, which would hold up everything periodic.
func (c *Client) takeUp(ctx context.Context) error {
	exec := c.driver.GetExecutor()
	if _, err := exec.LeaderResign(ctx, &riverdriver.LeaderResignParams{LeaderID: c.cfg.ID, LeadershipTopic: "river_leadership"}); err != nil {
		return err
	}
	now := time.Now().UTC()
	for {
		stuck, err := exec.JobGetStuck(ctx, &riverdriver.JobGetStuckParams{Max: takeUpBatch, StuckHorizon: now.Add(time.Hour)})
		if err != nil {
			return err
		}
		var p riverdriver.JobRescueManyParams
		for _, j := range stuck {
			if n := len(j.AttemptedBy); n == 0 || j.AttemptedBy[n-1] != c.cfg.ID {
				continue
			}
			note, err := json.Marshal(rivertype.AttemptError{At: now, Attempt: j.Attempt, Error: "the process ended; taken up by the next"})
			if err != nil {
				return err
			}
			p.ID = append(p.ID, j.ID)
			p.Error = append(p.Error, note)
			p.FinalizedAt = append(p.FinalizedAt, nil)
			p.ScheduledAt = append(p.ScheduledAt, now)
			p.State = append(p.State, string(rivertype.JobStateAvailable))
		}
		if len(p.ID) == 0 {
			return nil
		}
		if _, err := exec.JobRescueMany(ctx, &p); err != nil {
			return err
		}
		if len(stuck) < takeUpBatch {
			return nil
		}
	}
}
