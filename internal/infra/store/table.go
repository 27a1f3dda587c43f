package store

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/usage"
)

// table lists the columns of a table once. The queries that read and write whole
// rows are made from it. R is a row in memory.
//
// Adding a column takes a migration and a line here.
type table[R any] struct {
	name    string
	columns []column[R]

	selected string // columns that are read, for SELECT and RETURNING
	insert   string // INSERT INTO … VALUES (…)
	set      string // what follows SET in an UPDATE
}

// column is a column and its place in a row.
type column[R any] struct {
	name string
	in   uses
	// at returns where the column is read to and written from: a pointer to a
	// field, or a codec if the database has the value in another form.
	at func(r *R) any
	// expr is written instead of the value: an SQL expression of args.
	expr string
	args func(r *R) []any
}

// col is a column whose value is written as it is.
func col[R any](name string, in uses, at func(r *R) any) column[R] {
	return column[R]{name: name, in: in, at: at}
}

// uses says which queries a column takes part in.
type uses uint8

const (
	read   uses = 1 << iota // SELECT and RETURNING
	insert                  // INSERT
	update                  // UPDATE

	fixed = read | insert // written once
	all   = read | insert | update
)

func newTable[R any](name string, columns ...column[R]) *table[R] {
	t := &table[R]{name: name, columns: columns}
	t.selected = strings.Join(t.names(read), ", ")
	var exprs, sets []string
	for _, c := range columns {
		if c.expr == "" {
			c.expr = "?"
		}
		if c.in&insert != 0 {
			exprs = append(exprs, c.expr)
		}
		if c.in&update != 0 {
			sets = append(sets, c.name+" = "+c.expr)
		}
	}
	t.insert = fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", name, strings.Join(t.names(insert), ", "), strings.Join(exprs, ", "))
	t.set = strings.Join(sets, ", ")
	return t
}

// names lists the columns that take part in a query.
func (t *table[R]) names(in uses) (names []string) {
	for _, c := range t.columns {
		if c.in&in != 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// of is selected with each column qualified by a table's alias.
func (t *table[R]) of(alias string) string {
	names := t.names(read)
	for i := range names {
		names[i] = alias + "." + names[i]
	}
	return strings.Join(names, ", ")
}

// excluded is a list of assignments for ON CONFLICT DO UPDATE: each column that an
// UPDATE writes gets the value that the INSERT had for it.
func (t *table[R]) excluded() string {
	names := t.names(update)
	for i, name := range names {
		names[i] = name + " = excluded." + name
	}
	return strings.Join(names, ", ")
}

// dest returns what Scan reads the selected columns into.
func (t *table[R]) dest(r *R) []any {
	dest := make([]any, 0, len(t.columns))
	for _, c := range t.columns {
		if c.in&read != 0 {
			dest = append(dest, c.at(r))
		}
	}
	return dest
}

// scan reads the selected columns into a row.
func (t *table[R]) scan(s scanner, r *R) error { return s.Scan(t.dest(r)...) }

// values are the arguments of insert or set, and more that follow them.
func (t *table[R]) values(in uses, r *R, more ...any) ([]any, error) {
	values := make([]any, 0, len(t.columns)+len(more))
	for _, c := range t.columns {
		if c.in&in == 0 {
			continue
		}
		if c.args != nil {
			values = append(values, c.args(r)...)
			continue
		}
		v, err := valueAt(c.at(r))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.name, c.name, err)
		}
		values = append(values, v)
	}
	return slices.Concat(values, more), nil
}

// valueAt returns what a pointer to a field, or a codec, writes.
func valueAt(at any) (any, error) {
	switch p := at.(type) {
	case codec:
		return p.value()
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
