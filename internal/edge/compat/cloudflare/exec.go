package cloudflare

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// Exec is the body that runs a command.
type Exec struct {
	Argv    []string `json:"argv"`
	Timeout *int64   `json:"timeout_ms,omitzero"`
	Dir     *string  `json:"cwd,omitzero"`
}

// maxTimeout bounds the time of a command.
const maxTimeout = 24 * time.Hour

const codeExec = "exec_error"

func (in *Exec) spec() (process.Spec, error) {
	s := process.Spec{Argv: in.Argv, Dir: runtime.Home, Lossless: true}
	if len(in.Argv) == 0 || in.Argv[0] == "" {
		return s, httpapi.Invalid("argv must have a program")
	}
	for _, arg := range in.Argv {
		if strings.Contains(arg, "\x00") {
			return s, httpapi.Invalid("argv must have no NUL")
		}
	}
	if in.Timeout != nil {
		if *in.Timeout < 1 || *in.Timeout > maxTimeout.Milliseconds() {
			return s, httpapi.Invalid("timeout_ms must be 1 to %d", maxTimeout.Milliseconds())
		}
		s.Timeout = time.Duration(*in.Timeout) * time.Millisecond
	}
	if in.Dir == nil {
		return s, nil
	}
	var err error
	s.Dir, err = homeOf(*in.Dir)
	return s, err
}

// exec runs a command, and sends what it writes as server-sent events. It is ended when
// the client leaves.
func (d *Handlers) exec(c *httpapi.Call, in *Exec) error {
	spec, err := in.spec()
	if err != nil {
		return err
	}
	ctx, stop := c.Living(c.Context())
	defer stop()
	return d.within(ctx, c, func(u *sandboxes.Use) error {
		events := &events{w: c.W, conn: http.NewResponseController(c.W)}
		out, err := u.Run(ctx, spec, nil)
		if code, ok := sandboxes.NotStarted(err); ok { // as a shell says it
			c.Start(httpapi.EventStream)
			return errors.Join(events.send(process.Stderr, []byte(spec.Argv[0]+": "+httpapi.Reason(err)+"\n")), events.exit(code))
		}
		if err != nil {
			return &failed{err, codeExec}
		}
		defer out.Close()
		c.W.Header().Set("X-Accel-Buffering", "no")
		c.Start(httpapi.EventStream)
		_ = events.conn.Flush() // the first event fails if this does
		alive := time.NewTicker(httpapi.Keepalive)
		defer alive.Stop()
		err = out.Show(ctx, events.send, alive.C, events.alive)
		if !errors.Is(err, io.EOF) {
			_ = out.Abandon(ctx) // a sandbox that has gone has ended it
			if ctx.Err() != nil && c.Context().Err() != nil {
				return err
			}
			if why := u.Stopped(ctx); why != nil {
				err = why
			}
			return events.fail(err)
		}
		exit := out.Exit()
		if exit.TimedOut {
			return events.fail(&failed{fault.New(fault.Conflict, "the command did not end within %d ms", *in.Timeout), codeExec})
		}
		if why := u.Killed(ctx, exit); why != nil {
			if err := events.send(process.Stderr, []byte(httpapi.Reason(why)+"\n")); err != nil {
				return err
			}
		}
		return events.exit(exit.Code)
	})
}

// events are those that a client is sent.
type events struct {
	w    http.ResponseWriter
	conn *http.ResponseController
}

func (e *events) put(text string) error {
	if _, err := io.WriteString(e.w, text); err != nil {
		return err
	}
	return e.conn.Flush()
}

func (e *events) send(stream process.Stream, data []byte) error {
	return e.put("event: " + stream.String() + "\ndata: " + base64.StdEncoding.EncodeToString(data) + "\n\n")
}

func (e *events) alive() error { return e.put(":\n\n") }

func (e *events) exit(code int) error {
	return e.put("event: exit\ndata: {\"exit_code\":" + strconv.Itoa(code) + "}\n\n")
}

func (e *events) fail(err error) error {
	text, err := json.Marshal(refusalOf(err))
	if err != nil {
		return err
	}
	return e.put("event: error\ndata: " + string(text) + "\n\n")
}
