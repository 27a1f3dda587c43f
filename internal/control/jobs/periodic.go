package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// periodicArgs name a Periodic.
type periodicArgs struct {
	Name string `json:"name"`
}

func (periodicArgs) Kind() string { return "periodic" }

// InsertOpts keeps a slow one from being stored twice.
func (periodicArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: periodicQueue, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}}}
}

// schedule has it done at the start of the first process, and then every so
// often.
func (p Periodic) schedule() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(p.Every),
		func() (river.JobArgs, *river.InsertOpts) { return periodicArgs{Name: p.Name}, nil },
		&river.PeriodicJobOpts{ID: p.Name, RunOnStart: true})
}

type periodicWorker struct {
	river.WorkerDefaults[periodicArgs]
	tasks map[string]Periodic
	log   *slog.Logger
}

func (w *periodicWorker) Timeout(j *river.Job[periodicArgs]) time.Duration {
	return w.tasks[j.Args.Name].Timeout
}

// Work does the task. A failure is logged; the next turn is the next attempt.
func (w *periodicWorker) Work(ctx context.Context, j *river.Job[periodicArgs]) error {
	task, ok := w.tasks[j.Args.Name]
	if !ok {
		return nil // of another version
	}
	if err := task.Run(ctx); err != nil {
		w.log.ErrorContext(ctx, "periodic work failed", "name", task.Name, "error", err)
	}
	return nil
}
