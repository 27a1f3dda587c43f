package modeltest

import (
	"context"
	"iter"

	"github.com/atoll-run/atoll/internal/core/model"
)

// Script is a model.Model that answers with what it returns. At a delta without a Kind it
// waits until the request is given up.
type Script func(q model.Request) []model.Delta

var _ model.Model = Script(nil)

// Generate implements model.Model.
func (s Script) Generate(ctx context.Context, q model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range s(q) {
			if d.Kind == 0 {
				<-ctx.Done()
				yield(d, context.Cause(ctx))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}
