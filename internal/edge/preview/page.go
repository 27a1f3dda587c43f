package preview

import (
	"html/template"
	"io"
	"net/http"
	"strings"
)

var page = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34em;padding:0 1em;color:#333;background:#fff}h1{font-size:1.3em}</style>
<h1>{{.Title}}</h1><p>{{.Text}}</p></html>
`))

// page answers in our own words.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, status int, text string) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		header.Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text+"\n") // who has gone needs no answer
		return
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	w.WriteHeader(status)
	_ = page.Execute(w, struct{ Title, Text string }{http.StatusText(status), text})
}

// unknown answers for every host that is no preview, or is none any more.
func (h *Handler) unknown(w http.ResponseWriter, r *http.Request) {
	h.page(w, r, http.StatusNotFound, "There is nothing at this address. A preview that was closed, or whose sandbox is gone, has a new address when its port is opened again.")
}
