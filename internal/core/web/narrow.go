package web

import (
	"math"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/wire"
)

// ContextSize names a number of tokens per page.
type ContextSize string

// Choices lists the sizes.
func (ContextSize) Choices() []string { return []string{"low", "medium", "high"} }

// contextTokens are the tokens per page.
var contextTokens = map[ContextSize]int{"low": 256, "medium": 1024, "high": 4096}

// Choices lists every recency.
func (Recency) Choices() []string {
	all := make([]string, len(Recencies))
	for i, r := range Recencies {
		all[i] = string(r)
	}
	return all
}

// Narrowing contains the fields that narrow a search, as clients of the contract send them. Nil
// fields are omitted ones.
type Narrowing struct {
	ContextSize                                *ContextSize // instead of the two numbers of tokens
	MaxTokens, MaxPerPage                      *wire.Whole  // of all snippets together, of each one
	Domains                                    []string     // a leading - excludes a domain
	Country                                    *string
	Recency                                    *Recency
	After, Before, UpdatedAfter, UpdatedBefore *string // days, as in 3/1/2026
}

// Apply sets what n narrows in q. It returns an Invalid fault that names the field.
func (n *Narrowing) Apply(q *Query) (err error) {
	if err := WholeNumber("max_tokens", n.MaxTokens, &q.MaxTokens); err != nil {
		return err
	}
	if err := WholeNumber("max_tokens_per_page", n.MaxPerPage, &q.MaxPerResult); err != nil {
		return err
	}
	if n.ContextSize != nil {
		if n.MaxTokens != nil || n.MaxPerPage != nil {
			return invalid("search_context_size stands for max_tokens and max_tokens_per_page: give it or them")
		}
		q.MaxPerResult = contextTokens[*n.ContextSize]
	}
	f := &q.Filter
	for _, d := range n.Domains {
		if name, not := strings.CutPrefix(d, "-"); not {
			f.NotDomains = append(f.NotDomains, name)
		} else {
			f.Domains = append(f.Domains, name)
		}
	}
	if n.Country != nil {
		f.Country = *n.Country
	}
	if n.Recency != nil {
		f.Recency = *n.Recency
	}
	for _, d := range []struct {
		name string
		from *string
		to   *time.Time
	}{
		{"search_after_date_filter", n.After, &f.After}, {"search_before_date_filter", n.Before, &f.Before},
		{"last_updated_after_filter", n.UpdatedAfter, &f.UpdatedAfter}, {"last_updated_before_filter", n.UpdatedBefore, &f.UpdatedBefore},
	} {
		if d.from == nil {
			continue
		}
		if *d.to, err = time.Parse("1/2/2006", *d.from); err != nil || d.to.Year() < 1 {
			return invalid("%s must be a day as MM/DD/YYYY, such as 3/1/2026", d.name)
		}
	}
	return nil
}

// WholeNumber sets to from a field with a whole number of 1 to MaxTokens; nil leaves it unchanged.
func WholeNumber(name string, from *wire.Whole, to *int) error {
	if from == nil {
		return nil
	}
	n := float64(*from)
	if n != math.Trunc(n) || n < 1 || n > MaxTokens {
		return invalid("%s must be a whole number from 1 to %d", name, MaxTokens)
	}
	*to = int(n)
	return nil
}
