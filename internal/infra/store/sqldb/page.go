package sqldb

import (
	"context"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// MaxPage is the maximum number of entries on a page.
const MaxPage = 100

// Page selects a part of a list.
type Page struct {
	Cursor string // next of the previous page; "" for the first page
	Limit  int    // 1 to MaxPage
}

// PageOf reads a page of a list in descending order of the column by, whose value at returns. query
// ends in its WHERE. next is the cursor of the next page, "" at the end of the list.
func PageOf[T any](ctx context.Context, db *DB, p Page, list, query, by string, args []any, scan func(Scanner) (T, error), at func(*T) int64) (all []T, next string, err error) {
	if p.Limit < 1 || p.Limit > MaxPage {
		return nil, "", fault.New(fault.Invalid, "limit must be between 1 and %d", MaxPage)
	}
	if p.Cursor != "" {
		from, err := DecodeCursor(db.Seal, list, p.Cursor)
		if err != nil {
			return nil, "", err
		}
		query, args = query+` AND `+by+` < ?`, append(args, from.At)
	}
	rows, err := db.Read.Rows(ctx, query+` ORDER BY `+by+` DESC LIMIT ?`, append(args, p.Limit+1)...)
	if all, err = Collect(rows, err, scan); err != nil || len(all) <= p.Limit {
		return all, "", err
	}
	all = all[:p.Limit]
	return all, EncodeCursor(db.Seal, list, Place{At: at(&all[p.Limit-1])}), nil
}
