package atoll

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
)

// Pager is a list on the server, which is read a page at a time.
type Pager[T any] struct {
	c      *Client
	path   string
	query  url.Values
	cursor string                             // the parameter that names a page; "" for page
	whole  func(context.Context) ([]T, error) // of lists that have one page
}

// Page is a part of a list.
type Page[T any] struct {
	Data []T
	Next string // names the page after this one for Pager.Page; "" for the last
}

// page is a part of a list as the server sends it. Those of containers and of a response's
// inputs name the last item in place of the next page.
type page[T any] struct {
	Data     []T     `json:"data"`
	NextPage *string `json:"next_page"`
	HasMore  bool    `json:"has_more"`
	LastID   *string `json:"last_id"`
}

// Page reads one page: the first with "", or the one that Next of another names.
func (p *Pager[T]) Page(ctx context.Context, after string) (Page[T], error) {
	if p.whole != nil {
		data, err := p.whole(ctx)
		return Page[T]{Data: data}, err
	}
	query := url.Values{}
	maps.Copy(query, p.query)
	if after != "" {
		query.Set(cmp.Or(p.cursor, "page"), after)
	}
	part, err := call[page[T]](ctx, p.c, http.MethodGet, p.path, query, nil)
	switch out := (Page[T]{Data: part.Data}); {
	case err != nil:
		return Page[T]{}, err
	case part.NextPage != nil:
		out.Next = *part.NextPage
		return out, nil
	case part.HasMore && part.LastID != nil:
		out.Next = *part.LastID
		return out, nil
	default:
		return out, nil
	}
}

// Each yields all items. Each page is read when the one before has been used.
func (p *Pager[T]) Each(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			got, err := p.Page(ctx, after)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range got.Data {
				if !yield(item, nil) {
					return
				}
			}
			if after = got.Next; after == "" {
				return
			}
		}
	}
}

// All reads at most limit items; 0 is for all of them.
func (p *Pager[T]) All(ctx context.Context, limit int) ([]T, error) {
	out := []T{}
	for item, err := range p.Each(ctx) {
		if err != nil {
			return nil, err
		}
		if out = append(out, item); limit > 0 && len(out) == limit {
			break
		}
	}
	return out, nil
}
