package redteam

import (
	"fmt"
	"net/http"
)

// index serves a Python package index: a page that links to the files, and the files.
func (l *lure) index(w http.ResponseWriter, _ *http.Request, kind, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind == "files" {
		if l.packs[name] == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(l.packs[name])
		return
	}
	w.Header().Set("Content-Type", "text/html")
	for file := range l.packs {
		_, _ = fmt.Fprintf(w, "<a href=\"/files/%s\">%s</a>\n", file, file)
	}
}
