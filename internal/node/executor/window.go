package executor

import "time"

// window is the stretch of time that a turn's sandbox stays for certain, from when a job
// began to use it. One use in it costs as much as many.
type window struct {
	Began  time.Time
	Length time.Duration // 0 where there are no windows
}

func (w window) end() time.Time { return w.Began.Add(w.Length) }

// use begins a window at a time unless one goes on, and reports whether it did.
func (w *window) use(at time.Time, length time.Duration) bool {
	if length == 0 {
		*w = window{}
		return false
	}
	goesOn := w.Length > 0 && at.Before(w.end())
	if !goesOn {
		w.Began = at
	}
	w.Length = length
	return !goesOn
}

// extend begins the windows that a use runs into which ends at a time, and returns how many
// they are.
func (w *window) extend(until time.Time) (n int) {
	if w.Length == 0 || until.Before(w.end()) {
		return 0
	}
	n = int(until.Sub(w.Began) / w.Length)
	w.Began = w.Began.Add(time.Duration(n) * w.Length)
	return n
}

// openWindow notes that the job begins to use the sandbox of its turn.
func (t *task) openWindow() {
	if t.turn == nil {
		return
	}
	if !t.reused {
		t.turn.window = window{}
	}
	if t.turn.window.use(t.started, t.job.Window) {
		t.windows = 1
	}
	t.window = t.turn.window
}

// closeWindow returns how many windows began with the job, now that it has ended.
func (t *task) closeWindow(at time.Time) int {
	n := t.windows + t.window.extend(at)
	if t.turn != nil {
		t.turn.window = t.window
	}
	return n
}
