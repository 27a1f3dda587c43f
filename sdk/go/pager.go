package atoll

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/http"
	"net/url"
)

// Pager reads a list on the server one page at a time.
type Pager[T any] struct {
	c      *Client
	path   string
	query  url.Values
	cursor string                             // the parameter that names a page; "" for page
	whole  func(context.Context) ([]T, error) // reads a list of a single page
}

// Page is one page of a list.
type Page[T any] struct {
	Data []T
	Next string // names the page after this one for Pager.Page; "" for the last
}

// page is the wire form of Page. The lists of containers and of a response's inputs give the last
// item's id instead of a token for the next page.
type page[T any] struct {
	Data     []T     `json:"data"`
	NextPage *string `json:"next_page"`
	HasMore  bool    `json:"has_more"`
	LastID   *string `json:"last_id"`
}

// Page reads one page: pass "" for the first, then the Next of the previous page.
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

// Each yields all items. It requests a page when the caller has used the previous one.
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

// All reads at most limit items; 0 reads all.
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
