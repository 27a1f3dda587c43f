// Command packhelp writes the files of a folder to a zip archive. The same files give the same bytes.
//
//	go run ./scripts/packhelp FOLDER ARCHIVE
package main

import (
	"archive/zip"
	"io/fs"
	"log"
	"os"
)

func main() {
	if err := pack(os.DirFS(os.Args[1]), os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func pack(folder fs.FS, archive string) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	err = fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		entry, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		_, err = entry.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}
