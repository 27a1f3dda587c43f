package sqldb

import (
	"context"
	"database/sql"
	"strings"
)

// Selection builds a query with optional conditions.
type Selection struct {
	text strings.Builder
	args []any
}

// Add appends a part of the query and the arguments of that part.
func (q *Selection) Add(text string, args ...any) {
	q.text.WriteString(text)
	q.args = append(q.args, args...)
}

// Text returns the query.
func (q *Selection) Text() string { return q.text.String() }

// Args returns the arguments of the query.
func (q *Selection) Args() []any { return q.args }

// Rows runs the query. p does not keep it prepared, because there are too many variants.
func (q *Selection) Rows(ctx context.Context, p *Pool) (*sql.Rows, error) {
	if err := CheckText(q.args); err != nil {
		return nil, err
	}
	query := q.text.String()
	if p.Postgres {
		query = number(query)
	}
	return p.DB.QueryContext(ctx, query, q.args...)
}

// Same adds the condition that a column equals value, unless value is "".
func (q *Selection) Same(column, value string) {
	if value != "" {
		q.Add(` AND `+column+` = ?`, value)
	}
}

// Partial is Same for a column whose partial index leaves out "".
func (q *Selection) Partial(column, value string) {
	if value != "" {
		q.Add(` AND `+column+` = ? AND `+column+` <> ''`, value)
	}
}
