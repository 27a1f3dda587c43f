// Package attack passes the options of 'atoll redteam' to the program atoll-redteam, which contains
// the attacks.
package attack

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/app/localserver"
)

// Format is the format of a report or list.
type Format string

// The formats.
const (
	Text  Format = "text"
	JSON  Format = "json"
	JUnit Format = "junit"
)

// Formats lists all formats.
var Formats = []Format{Text, JSON, JUnit}

// Options are the flags of 'atoll redteam', and the server that they select.
type Options struct {
	List     bool          `json:"list"` // list the cases without running them; needs no server
	Run      string        `json:"run"`  // patterns of cases; "" for all
	Format   Format        `json:"format"`
	Output   string        `json:"output"` // path of the report; "" for stdout
	Timeout  time.Duration `json:"timeout"`
	Parallel int           `json:"parallel"`
	Force    bool          `json:"force"`
	Listen   string        `json:"listen"`

	URL     string             `json:"url"`
	Key     string             `json:"key"`
	Data    string             `json:"data"`    // the server's data directory; "" if it runs elsewhere
	Program string             `json:"program"` // path of the atoll command
	Advice  localserver.Advice `json:"advice"`  // for a server that cannot be reached
}

// Read decodes the options that atoll passes on stdin.
func Read(r io.Reader) (o Options, err error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return Options{}, fmt.Errorf("read options: %w; run 'atoll redteam', which starts this program", err)
	}
	return o, nil
}
