package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app/tty"
	"github.com/atoll-run/atoll/internal/core/fault"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// printer shows what a command has to tell on stdout: a table for people, or
// JSON for programs. Every command that prints a result uses one.
type printer struct {
	out   io.Writer
	json  bool
	quiet bool // lists show names alone
}

// addFlags adds -o and --json.
func (p *printer) addFlags(flags *pflag.FlagSet) {
	flags.VarP(&format{p}, "output", "o", "output format: table or json")
	flags.BoolVar(&p.json, "json", false, "the same as -o json")
}

// addQuiet adds -q, for commands that list things.
func (p *printer) addQuiet(flags *pflag.FlagSet) {
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "print only names, one per line")
}

// format is the value of -o.
type format struct{ *printer }

var _ pflag.Value = (*format)(nil)

func (f *format) Type() string { return "table|json" }

func (f *format) String() string {
	if f.printer != nil && f.json {
		return "json"
	}
	return "table"
}

func (f *format) Set(text string) error {
	if text != "table" && text != "json" {
		return fmt.Errorf("want table or json")
	}
	f.json = text == "json"
	return nil
}

// print shows v as JSON, or as text writes it: cells that a tab separates are
// aligned.
func (p *printer) print(v any, text func(w io.Writer)) error {
	if p.json {
		out := json.NewEncoder(p.out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// say confirms what was done where there is nothing to show.
func (p *printer) say(format string, args ...any) error {
	if p.json {
		return nil
	}
	_, err := fmt.Fprintf(p.out, format+"\n", args...)
	return err
}

// listing shows a list: its head, and a row for each item, whose first cell is its
// name.
func listing[T any](p *printer, head []any, cells func(T) []any) func([]T) error {
	return func(all []T) error {
		if all == nil {
			all = []T{} // which is [] in JSON
		}
		return p.print(all, func(w io.Writer) {
			if !p.quiet {
				row(w, head...)
			}
			for _, v := range all {
				if p.quiet {
					row(w, cells(v)[0])
				} else {
					row(w, cells(v)...)
				}
			}
		})
	}
}

// deletes deletes each, and confirms it. One that cannot be deleted does not keep
// the others.
func (p *printer) deletes(names []string, force bool, del func(name string) error) error {
	var errs []error
	for _, name := range names {
		err := del(name)
		if force && missing(err) {
			continue
		}
		if err == nil {
			err = p.say("deleted %s", name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// missing reports whether an error says that something does not exist.
func missing(err error) bool {
	if refused, ok := errors.AsType[*sdk.Error](err); ok {
		return refused.Status == http.StatusNotFound
	}
	return fault.KindOf(err) == fault.NotFound
}

// row writes the cells of a table's row; empty ones show as a dash. Characters that terminals
// obey are replaced: text from callers cannot move the cursor or the columns.
func row(w io.Writer, cells ...any) {
	for i, cell := range cells {
		text := strings.Map(func(c rune) rune {
			if tty.Obeyed(c) {
				return ' '
			}
			return c
		}, fmt.Sprint(cell))
		if text == "" {
			text = "-"
		}
		if i > 0 {
			_, _ = io.WriteString(w, "\t") // the flush reports an error
		}
		_, _ = io.WriteString(w, text)
	}
	_, _ = io.WriteString(w, "\n")
}

// when is a time as tables show it, in the local time zone.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func whenOr(t *time.Time, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return when(*t)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// text is what s points to, "" for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// number is what n points to, an empty cell for nil.
func number[T int | int64](n *T) any {
	if n == nil {
		return ""
	}
	return *n
}
