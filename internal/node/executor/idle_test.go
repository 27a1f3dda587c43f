package executor

import (
	"testing"

	"github.com/atoll-run/atoll/internal/core/execution"
)

// lasting are sandboxes whose programs go on without their server.
type lasting struct{ Sandboxes }

func (lasting) Fragile(*execution.Job) bool { return false }

// TestATurnThatEndedIsNotNoted: the journal has the next process take over the sandbox of a
// turn, but not of one that EndTurn was called for, or where runs end with their server.
func TestATurnThatEndedIsNotNoted(t *testing.T) {
	for name, c := range map[string]struct{ detach, ended, want bool }{
		"kept": {true, false, true}, "ended": {true, true, false}, "no detach": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := &turn{name: "a"}
			x := &Executor{cfg: Config{Sandboxes: lasting{}, Detach: c.detach}, turns: map[string]*turn{"a": u}}
			if c.ended {
				x.turns["a"] = &turn{name: "a"} // another one since
			}
			dir := t.TempDir()
			j, err := newJournal(dir, jobRecord{Job: execution.Job{Turn: "a", Code: "secret"}})
			if err != nil {
				t.Fatal(err)
			}
			noted, err := (&task{x: x, turn: u, job: execution.Job{Turn: "a", Code: "secret"}}).closeJournal(j, true)
			if err != nil || noted != c.want || HasJob(dir) != c.want {
				t.Fatalf("noted is %v, the journal has something: %v, %v", noted, HasJob(dir), err)
			}
			if !c.want {
				return
			}
			again, _, idle, err := openJournal(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer again.close()
			if idle == nil || idle.Job.Turn != "a" || idle.Job.Code != "" {
				t.Errorf("it has %+v", idle)
			}
		})
	}
}
