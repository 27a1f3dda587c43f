package sqldb

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// Table lists the columns of a table once. The queries that read and write whole rows are made from
// it. R is a row in memory.
//
// Each record that the store reads goes through a Table or a view. Adding a column takes a migration
// and a line in its list.
type Table[R any] struct {
	name    string
	columns []Column[R]

	Selected string // columns that are read, for SELECT and RETURNING
	Insert   string // INSERT INTO … VALUES (…)
	Set      string // assignments of an UPDATE
}

// Column is a column of a Table and its field in a row.
type Column[R any] struct {
	Name string
	In   Uses
	// At returns where the column is read to and written from: a pointer to a
	// field, or a Codec if the database has the value in another form.
	At func(r *R) any
	// Expr is written instead of the value: an SQL expression of Args.
	Expr string
	Args func(r *R) []any
}

// Col returns a column that is written without an expression.
func Col[R any](name string, in Uses, at func(r *R) any) Column[R] {
	return Column[R]{Name: name, In: in, At: at}
}

// Uses says which queries a column takes part in.
type Uses uint8

// The queries of a Table.
const (
	Read   Uses = 1 << iota // SELECT and RETURNING
	Insert                  // INSERT
	Update                  // UPDATE

	Fixed = Read | Insert // written once
	All   = Read | Insert | Update
)

// tables has the columns of each table of the program.
var tables sync.Map

// Tables returns the columns of each table of the program, by name. A test compares them with the
// schema.
func Tables() map[string][]string {
	all := map[string][]string{}
	for name, columns := range tables.Range {
		all[name.(string)] = slices.Clone(columns.([]string))
	}
	return all
}

// NewTable returns a table with its columns, in the order of SELECT and INSERT.
func NewTable[R any](name string, columns ...Column[R]) *Table[R] {
	t := &Table[R]{name: name, columns: columns}
	if _, twice := tables.LoadOrStore(name, t.names(All)); twice {
		panic("sqldb: two tables " + name)
	}
	t.Selected = strings.Join(t.names(Read), ", ")
	var exprs, sets []string
	for _, c := range columns {
		if c.Expr == "" {
			c.Expr = "?"
		}
		if c.In&Insert != 0 {
			exprs = append(exprs, c.Expr)
		}
		if c.In&Update != 0 {
			sets = append(sets, c.Name+" = "+c.Expr)
		}
	}
	t.Insert = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", name, strings.Join(t.names(Insert), ", "), strings.Join(exprs, ", "))
	t.Set = strings.Join(sets, ", ")
	return t
}

// NewView returns the columns of a SELECT that joins tables or computes values. Only its Selected,
// Dest and Scan are of use.
func NewView[R any](columns ...Column[R]) *Table[R] {
	t := &Table[R]{columns: columns}
	t.Selected = strings.Join(t.names(Read), ", ")
	return t
}

// names lists the columns that take part in a query.
func (t *Table[R]) names(in Uses) (names []string) {
	for _, c := range t.columns {
		if c.In&in != 0 {
			names = append(names, c.Name)
		}
	}
	return names
}

// Of returns Selected with each column qualified by an alias of the table.
func (t *Table[R]) Of(alias string) string {
	names := t.names(Read)
	for i := range names {
		names[i] = alias + "." + names[i]
	}
	return strings.Join(names, ", ")
}

// Excluded returns the assignments of ON CONFLICT DO UPDATE: each column of Set gets the value of the
// INSERT.
func (t *Table[R]) Excluded() string {
	names := t.names(Update)
	for i, name := range names {
		names[i] = name + " = excluded." + name
	}
	return strings.Join(names, ", ")
}

// Dest returns the destinations of the selected columns, for a Scan that reads more columns.
func (t *Table[R]) Dest(r *R) []any {
	dest := make([]any, 0, len(t.columns))
	for _, c := range t.columns {
		if c.In&Read != 0 {
			dest = append(dest, c.At(r))
		}
	}
	return dest
}

// Scan reads the selected columns into a row.
func (t *Table[R]) Scan(s Scanner, r *R) error { return s.Scan(t.Dest(r)...) }

// Row reads the selected columns into a new row.
func (t *Table[R]) Row(s Scanner) (R, error) {
	var r R
	err := t.Scan(s, &r)
	return r, err
}

// Pointer is Row for records that are used by their address. It is never nil.
func (t *Table[R]) Pointer(s Scanner) (*R, error) {
	r := new(R)
	return r, t.Scan(s, r)
}

// Values returns the arguments of Insert or Set, followed by more.
func (t *Table[R]) Values(in Uses, r *R, more ...any) ([]any, error) {
	values := make([]any, 0, len(t.columns)+len(more))
	for _, c := range t.columns {
		if c.In&in == 0 {
			continue
		}
		if c.Args != nil {
			values = append(values, c.Args(r)...)
			continue
		}
		v, err := valueAt(c.At(r))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.name, c.Name, err)
		}
		values = append(values, v)
	}
	return slices.Concat(values, more), nil
}

// Add inserts a row.
func (t *Table[R]) Add(ctx context.Context, q Querier, r *R) error {
	values, err := t.Values(Insert, r)
	if err == nil {
		_, err = q.Exec(ctx, t.Insert, values...)
	}
	return err
}

// valueAt returns what a pointer to a field, or a codec, writes.
func valueAt(at any) (any, error) {
	switch p := at.(type) {
	case Codec:
		return p.Value()
	case *string:
		return *p, nil
	case *int64:
		return *p, nil
	case *usage.Money:
		return int64(*p), nil
	case *int:
		return *p, nil
	case *uint16:
		return int64(*p), nil
	case *bool:
		return *p, nil
	case *float64:
		return *p, nil
	case *[]byte:
		return *p, nil
	case **int64:
		if *p == nil {
			return nil, nil
		}
		return **p, nil
	}
	v := reflect.ValueOf(at).Elem()
	if v.Kind() == reflect.String {
		return v.String(), nil
	}
	return nil, fmt.Errorf("no way to write a %s", v.Type())
}
