package interpreter

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/sandboxcall"
	"github.com/atoll-run/atoll/internal/core/codecontext"
	"github.com/atoll-run/atoll/internal/core/run"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Bounds of the images of a call.
const (
	maxImages     = 32
	maxImageBytes = 4 << 20 // of all
)

// imageTypes are the forms of values that are images, best first.
var imageTypes = []string{"image/png", "image/jpeg"}

// collector takes what code brings forth, within bounds. Output, values and errors are one
// text, in the order in which they came.
type collector struct {
	Output
	logs       []byte
	imageBytes int
	omitted    int  // images that were too many or too large
	begun      bool // the interpreter was given the code
	anew       bool // it had ended, and was started again
}

func (o *collector) take(e codecontext.Event) error {
	o.begun = true
	switch {
	case e.Display != nil && !o.image(e.Display):
		var text string
		if err := json.Unmarshal(e.Display.Data["text/plain"], &text); err == nil && text != "" {
			o.line(text)
		}
	case e.Display == nil:
		o.write(e.Text)
	}
	return nil
}

// image takes a display that is an image.
func (o *collector) image(d *codecontext.Display) bool {
	for _, mime := range imageTypes {
		form, ok := d.Data[mime]
		if !ok {
			continue
		}
		var text string
		if err := json.Unmarshal(form, &text); err != nil {
			return false
		}
		data, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(text))
		if err != nil { // it was redacted, or never was one
			return false
		}
		if len(o.Images) >= maxImages || o.imageBytes+len(data) > maxImageBytes {
			o.omitted++
			return true
		}
		o.imageBytes += len(data)
		o.Images = append(o.Images, Image{MediaType: mime, Data: data})
		return true
	}
	return false
}

func (o *collector) write(p []byte) {
	if room := sandboxcall.MaxStream - len(o.logs); len(p) > room {
		p, o.LogsCut = p[:room], true
	}
	o.logs = append(o.logs, p...)
}

// line writes a text that begins and ends a line.
func (o *collector) line(text string) {
	if n := len(o.logs); n > 0 && o.logs[n-1] != '\n' {
		o.write([]byte("\n"))
	}
	o.write([]byte(text + "\n"))
}

// ended is the outcome of a call, with what the model is told ahead of the output.
func (m *call) ended(s run.ItemStatus, told, why string) (*loop.Outcome, error) {
	o := &m.out
	if o.LogsCut {
		o.logs = o.logs[:wire.WholeRunes(o.logs)]
	}
	o.Logs = strings.ToValidUTF8(string(o.logs), "\uFFFD")
	it, err := item(m.Call, s, &o.Output, why)
	if err != nil {
		return nil, err
	}
	return &loop.Outcome{
		Result: sandboxcall.Result(told, s != run.ItemCompleted || why != ""),
		Item:   it,
	}, nil
}

// lost is the outcome of a call whose code was under way when its sandbox, or its
// interpreter, was ended.
func (m *call) lost(why error) (*loop.Outcome, error) {
	m.out.line(why.Error())
	var b strings.Builder
	fmt.Fprintf(&b, "The code did not come to its end: %s\n", why)
	sandboxcall.Section(&b, "output", string(m.out.logs), m.out.LogsCut)
	return m.ended(run.ItemFailed, b.String(), why.Error())
}

// outcome is that of code that was seen to end.
func (m *call) outcome(res *codecontext.Result, hint string) (*loop.Outcome, error) {
	o := &m.out
	o.LogsCut = o.LogsCut || res.StdoutTruncated || res.StderrTruncated || res.DisplaysTruncated
	var b strings.Builder
	if o.anew {
		b.WriteString("The interpreter had ended and was started again: variables of earlier calls are gone.\n")
	}
	status, why := run.ItemCompleted, ""
	switch res.Status {
	case codecontext.OK:
	case codecontext.Failed:
		why = "the code ended with an error"
		if e := res.Error; e != nil {
			o.line(strings.Join(e.Traceback, "\n"))
		}
	case codecontext.TimedOut:
		status, why = run.ItemFailed, fmt.Sprintf("the code was interrupted after %s", m.req.Timeout)
	case codecontext.Interrupted:
		status, why = run.ItemIncomplete, "the code was interrupted"
	default:
		status, why = run.ItemFailed, fmt.Sprintf("the code ended its interpreter with exit code %d, and its variables are gone", res.Exit.Code)
	}
	if why != "" {
		fmt.Fprintf(&b, "Error: %s.\n", why)
	}
	if hint != "" {
		fmt.Fprintf(&b, "Hint: %s\n", hint)
	}
	sandboxcall.Section(&b, "output", string(o.logs), o.LogsCut)
	if n := len(o.Images); n > 0 {
		fmt.Fprintf(&b, "[images shown to the user: %d]\n", n)
	}
	if o.omitted > 0 {
		fmt.Fprintf(&b, "[images omitted because they are too many or too large: %d; save them as files]\n", o.omitted)
	}
	if b.Len() == 0 {
		b.WriteString("The code ran without output.")
	}
	if status == run.ItemFailed {
		o.line(why)
	}
	return m.ended(status, b.String(), why)
}
