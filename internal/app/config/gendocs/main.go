// Command gendocs writes the reference of all settings.
package main

import (
	"log"
	"os"

	"github.com/atoll-run/atoll/internal/app/config"
)

func main() {
	if err := os.WriteFile(os.Args[1], []byte(config.Markdown()), 0o644); err != nil {
		log.Fatal(err)
	}
}
