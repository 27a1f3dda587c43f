package tenant

import "slices"

// MinErased is a lower bound of the rows that Erase finds if each table has one.
var MinErased = len(tenantRows) - 5

// Erases reports whether Erase deletes the rows of a table.
func Erases(table string) bool {
	return slices.ContainsFunc(tenantRows, func(r struct{ table, key string }) bool { return r.table == table })
}
