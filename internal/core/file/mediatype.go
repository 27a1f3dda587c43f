package file

import (
	"path"
	"strings"
)

// OctetStream is the media type of files with an unknown type.
const OctetStream = "application/octet-stream"

// mediaTypes maps extensions to media types. Every server uses the same ones.
var mediaTypes = map[string]string{
	".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".log": "text/plain; charset=utf-8", ".md": "text/markdown; charset=utf-8",
	".html": "text/html; charset=utf-8", ".htm": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".json": "application/json", ".jsonl": "application/jsonl", ".xml": "application/xml", ".yaml": "application/yaml", ".yml": "application/yaml",
	".tsv": "text/tab-separated-values; charset=utf-8", ".ics": "text/calendar; charset=utf-8",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".svg": "image/svg+xml", ".bmp": "image/bmp",
	".tif": "image/tiff", ".tiff": "image/tiff", ".mp3": "audio/mpeg", ".wav": "audio/wav", ".mp4": "video/mp4", ".webm": "video/webm",
	".pdf": "application/pdf", ".rtf": "application/rtf", ".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar",
	".docx":    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx":    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".parquet": "application/vnd.apache.parquet", ".sqlite": "application/vnd.sqlite3", ".ipynb": "application/x-ipynb+json",
}

// MediaType returns the media type of a file with a name; OctetStream for an unknown extension.
func MediaType(name string) string {
	if t, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return OctetStream
}
