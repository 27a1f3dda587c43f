// Command genopenapi writes the OpenAPI document.
package main

import (
	"log"
	"os"

	"github.com/atoll-run/atoll/api/openapi"
	"github.com/atoll-run/atoll/api/routes"
)

func main() {
	text, err := openapi.Document(routes.Documented(), "..")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(os.Args[1], text, 0o644); err != nil {
		log.Fatal(err)
	}
}
