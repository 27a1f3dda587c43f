package web

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/tenant"
)

// What the web says is covered as output of programs is, and before it is cut: a secret that
// was cut in two would not be found.

// coverAll covers texts in place.
func (s *Service) coverAll(p *tenant.Principal, texts ...*string) error {
	if s.cfg.Cover == nil {
		return nil
	}
	for _, text := range texts {
		covered, err := s.cfg.Cover(p, *text)
		if err != nil {
			return err
		}
		*text = covered
	}
	return nil
}

func (s *Service) cover(p *tenant.Principal) func(*Result) error {
	return func(r *Result) error { return s.coverAll(p, &r.Title, &r.URL, &r.Snippet) }
}

// covered is an Engine whose results are covered.
type covered struct {
	Engine
	cover func(*Result) error
}

// Search implements Engine.
func (c covered) Search(ctx context.Context, r Request) ([]Result, error) {
	found, err := c.Engine.Search(ctx, r)
	for i := range found {
		if err := c.cover(&found[i]); err != nil {
			return nil, err
		}
	}
	return found, err
}
