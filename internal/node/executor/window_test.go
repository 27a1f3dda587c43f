package executor

import (
	"testing"
	"time"
)

func TestWindows(t *testing.T) {
	const length = 20 * time.Minute
	begin := time.Unix(1_700_000_000, 0)
	at := func(minutes int) time.Time { return begin.Add(time.Duration(minutes) * time.Minute) }
	var w window
	uses := []struct {
		from, to int
		begins   bool
		runsInto int
		end      int // of the last window
	}{
		{0, 1, true, 0, 20}, {5, 6, false, 0, 20}, {19, 20, false, 1, 40}, {39, 39, false, 0, 40},
		{41, 42, true, 0, 61}, {60, 121, false, 4, 141}, {200, 240, true, 2, 260},
	}
	for _, u := range uses {
		if w.use(at(u.from), length) != u.begins || w.extend(at(u.to)) != u.runsInto || !w.end().Equal(at(u.end)) {
			t.Errorf("%+v: the last one ends at %s", u, w.end().Sub(begin))
		}
	}
	if w.use(at(250), 0) || w.extend(at(900)) != 0 || w.Length != 0 {
		t.Errorf("without windows: %+v", w)
	}
}
