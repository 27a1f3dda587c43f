package web

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/core/address"
	"github.com/atoll-run/atoll/internal/core/fault"
)

func invalid(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

var (
	language = regexp.MustCompile(`^[a-z]{2}$`)
	country  = regexp.MustCompile(`^[A-Z]{2}$`)
)

// complete checks a query against the bounds and an engine, and fills in what was left out.
func (q *Query) complete(e Engine) error {
	if len(q.Texts) == 0 || len(q.Texts) > MaxQueries {
		return invalid("query must be a text, or a list of 1 to %d", MaxQueries)
	}
	for _, text := range q.Texts {
		if n := utf8.RuneCountInString(text); strings.TrimSpace(text) == "" || n > MaxText || strings.ContainsRune(text, 0) {
			return invalid("query must have 1 to %d characters, and no NUL", MaxText)
		}
	}
	limit := MaxResults
	if q.Kind == People {
		limit = MaxPeople
	}
	for _, n := range []struct {
		name          string
		value         *int
		preset, limit int
	}{
		{"max_results", &q.Max, DefaultResults, limit},
		{"max_tokens", &q.MaxTokens, DefaultTokens, MaxTokens},
		{"max_tokens_per_page", &q.MaxPerResult, DefaultPerResult, MaxTokens},
	} {
		*n.value = cmp.Or(*n.value, n.preset)
		if *n.value < 1 || *n.value > n.limit {
			return invalid("%s must be between 1 and %d", n.name, n.limit)
		}
	}
	return q.Filter.check(e)
}

// check refuses what an engine cannot do, by the name that callers know it by.
func (f *Filter) check(e Engine) error {
	can := e.Filters()
	if len(f.Domains) > 0 && len(f.NotDomains) > 0 {
		return invalid("search_domain_filter must name either domains to search or, with a leading -, domains to exclude")
	}
	if len(f.Domains)+len(f.NotDomains) > MaxFilters {
		return invalid("search_domain_filter must have at most %d domains", MaxFilters)
	}
	for _, list := range [][]string{f.Domains, f.NotDomains} {
		for i, d := range list {
			if list[i] = address.Hostname(strings.TrimPrefix(d, ".")); list[i] == "" {
				return invalid("search_domain_filter must have domains such as example.com, -example.com or .org")
			}
		}
	}
	for _, l := range f.Languages {
		if !language.MatchString(l) {
			return invalid("search_language_filter must have codes of two lowercase letters, such as en")
		}
	}
	if f.Country != "" && !country.MatchString(f.Country) {
		return invalid("country must be two capital letters, such as US")
	}
	if !f.After.IsZero() && !f.Before.IsZero() && f.Before.Before(f.After) {
		return invalid("search_after_date_filter must not be later than search_before_date_filter")
	}
	dated := !f.After.IsZero() || !f.Before.IsZero()
	if f.Recency != "" && dated {
		return invalid("search_recency_filter cannot be combined with dates")
	}
	for _, has := range []struct {
		name string
		no   bool
	}{
		{"country", f.Country != "" && !can.Country},
		{"search_recency_filter " + string(f.Recency), f.Recency != "" && !slices.Contains(can.Recencies, f.Recency)},
		{"search_after_date_filter and search_before_date_filter", dated && !can.Published},
		{"last_updated_after_filter and last_updated_before_filter", (!f.UpdatedAfter.IsZero() || !f.UpdatedBefore.IsZero()) && !can.Updated},
		{"search_language_filter", len(f.Languages) > 0 && can.Languages == 0},
	} {
		if has.no {
			return invalid("%s is not supported by the server's provider (%s)", has.name, e.Name())
		}
	}
	if f.Country != "" && can.Locales && len(f.Languages) == 0 {
		return invalid("country needs a language in search_language_filter: the server's provider (%s) supports countries only with a language", e.Name())
	}
	if len(f.Languages) > can.Languages {
		return invalid("search_language_filter must have at most %d entries: the server's provider (%s) accepts no more", can.Languages, e.Name())
	}
	return nil
}

// holds reports whether a host is one that the filter lets through.
func (f *Filter) holds(host string) bool {
	below := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	if len(f.Domains) > 0 {
		return slices.ContainsFunc(f.Domains, below)
	}
	return !slices.ContainsFunc(f.NotDomains, below)
}
