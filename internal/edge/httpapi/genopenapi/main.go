// Command genopenapi writes the OpenAPI document.
package main

import (
	"log"
	"os"

	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

func main() {
	if err := os.WriteFile(os.Args[1], httpapi.Document(), 0o644); err != nil {
		log.Fatal(err)
	}
}
