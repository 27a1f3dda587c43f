// Package api has the OpenAPI document of Atoll's HTTP interface. It is generated from the
// table of operations, committed, and served as it is.
package api

import _ "embed"

//go:generate go run ./genopenapi openapi.json
//go:generate go run ./genreference openapi.json ../docs/reference/api

// OpenAPI is the document, as indented JSON.
//
//go:embed openapi.json
var OpenAPI []byte
