// Command genreference writes the API reference from the OpenAPI document: a Markdown page for
// each tag.
//
//	go run ./genreference OPENAPI.json FOLDER
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		log.Fatal(err)
	}
	folder := os.Args[2]
	if err := os.RemoveAll(folder); err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		log.Fatal(err)
	}
	for name, text := range doc.pages() {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
