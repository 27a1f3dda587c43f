package model

import (
	"context"
	"time"
)

// Trial is what one request to a model came to.
type Trial struct {
	Answer Answer
	Cost   Cost
	// First is the time until the first delta of the answer itself, 0 if there was none,
	// and Took the time of the whole.
	First, Took time.Duration
	// Err is why there is no answer, or not all of it; nil if there is.
	Err *Error
}

// maxTrial bounds the time of a trial.
const maxTrial = 2 * time.Minute

// Try asks a model something, as a tenant's request would.
func (c *Catalog) Try(ctx context.Context, idOrName, prompt string, maxOutput int) (Trial, error) {
	r, err := c.Model(ctx, idOrName)
	if err != nil {
		return Trial{}, err
	}
	m, err := c.cfg.Open(r)
	if err != nil {
		return Trial{}, err
	}
	limited, cancel := context.WithTimeout(ctx, maxTrial)
	defer cancel()
	var f Fold
	var t Trial
	begun := time.Now()
	for d, err := range m.Generate(limited, Request{Items: []Item{Text(User, prompt)}, MaxOutputTokens: maxOutput}) {
		if err != nil {
			if ctx.Err() != nil {
				return Trial{}, context.Cause(ctx)
			}
			t.Err = asError(err)
			break
		}
		if t.First == 0 && d.Kind != Started {
			t.First = time.Since(begun)
		}
		f.Add(d)
	}
	t.Took, t.Answer = time.Since(begun), f.Answer()
	t.Cost = r.Prices.Cost(t.Answer.Usage)
	return t, nil
}
