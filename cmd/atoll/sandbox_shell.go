package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (s *sandboxes) shell() *cobra.Command {
	var process string
	cmd := s.command("shell NAME [COMMAND]", "Open a terminal in a sandbox", `  atoll sandbox shell builder
  atoll sandbox shell builder 'top'
  atoll sandbox shell --process p-d8c50e53298d90e4 builder    come back to one that lives`, cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			t := &terminal{app: s.app, client: c, at: s.at(args[0]), process: process, input: true}
			if len(args) == 2 {
				if process != "" {
					return wrong("COMMAND starts a new terminal and --process attaches to an existing one; pass only one")
				}
				t.command = args[1]
			}
			return t.run(ctx)
		})
	cmd.Long = `Open a terminal in a sandbox. It ends with its program. When the connection breaks,
the terminal continues, and the command reconnects.

Exit codes: the program's own, 128+n when signal n ended it.`
	cmd.Flags().StringVar(&process, "process", "", "attach to the terminal with this process id")
	return cmd
}

// terminal shows a terminal of a sandbox in that of this process.
type terminal struct {
	app     *cli
	client  *sdk.Client
	at      sdk.SandboxRef
	command string
	input   bool // what is typed here goes to it

	process string // known from the first connection on
	cursor  int64  // what was shown
	typed   chan []byte
}

// reconnecting is how long a terminal is tried to be connected to again.
const reconnecting = 30 * time.Second

func (t *terminal) run(ctx context.Context) error {
	if in, ok := t.app.std.in.(*os.File); ok && t.input && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(in.Fd()), before) }()
	}
	t.typed = make(chan []byte)
	if t.input {
		go t.read(ctx)
	}
	var lost time.Time
	for {
		code, err := t.connect(ctx)
		if err == nil {
			return endCode(code)
		}
		told, refused := errors.AsType[*sdk.Error](err)
		switch {
		case ctx.Err() != nil:
			return &exit{code: exitCancelled}
		case t.process == "", refused && told.Status < 500:
			return err
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > reconnecting:
			return fmt.Errorf("connection lost, but the terminal still runs: reattach with 'atoll sandbox shell --process %s %s': %w", t.process, t.at.Name, err)
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func endCode(code int) error {
	if code == 0 {
		return nil
	}
	return &exit{code: code}
}

// read takes what is typed. It ends with the process: nothing stops a read of
// stdin.
func (t *terminal) read(ctx context.Context) {
	buf := make([]byte, 4096)
	for {
		n, err := t.app.std.in.Read(buf)
		if n > 0 {
			select {
			case t.typed <- append([]byte(nil), buf[:n]...):
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			select {
			case t.typed <- []byte{endOfInput}:
			case <-ctx.Done():
			}
			return
		}
	}
}

// endOfInput is what Ctrl-D sends.
const endOfInput = 4

// size is that of this terminal, if it is one.
func (t *terminal) size() (rows, columns uint16) {
	if out, ok := t.app.std.out.(*os.File); ok {
		if columns, rows, err := term.GetSize(int(out.Fd())); err == nil && rows > 0 && columns > 0 && max(rows, columns) <= math.MaxUint16 {
			return uint16(rows), uint16(columns)
		}
	}
	return 24, 80
}

// connect shows the terminal until its program ends, or the connection breaks.
func (t *terminal) connect(ctx context.Context) (code int, err error) {
	rows, columns := t.size()
	q := url.Values{"rows": {strconv.Itoa(int(rows))}, "columns": {strconv.Itoa(int(columns))}}
	switch {
	case t.process != "":
		q.Set("process", t.process)
		q.Set("after", strconv.FormatInt(t.cursor, 10))
	case t.command != "":
		q.Set("command", t.command)
	}
	conn, err := t.client.Terminal(ctx, t.at, q)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go t.send(ctx, conn)
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return 0, err
		}
		if kind == websocket.MessageBinary {
			if _, err := t.app.std.out.Write(data); err != nil {
				return 0, err
			}
			continue
		}
		var m sdk.TerminalMessage
		if err := json.Unmarshal(data, &m); err != nil {
			return 0, fmt.Errorf("read the server's message: %w", err)
		}
		switch {
		case m.Type == "started":
			t.process = m.ProcessID
		case m.Type == "cursor":
			t.cursor = m.Cursor
		case m.Type == "exit" && m.ExitCode != nil:
			if m.Reason != "" {
				fmt.Fprint(t.app.std.err, "\r\natoll: "+m.Reason+"\r\n")
			}
			return int(*m.ExitCode), nil
		}
	}
}

// send passes on what is typed, and how large the terminal becomes.
func (t *terminal) send(ctx context.Context, conn *websocket.Conn) {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	for {
		var err error
		select {
		case data := <-t.typed:
			err = conn.Write(ctx, websocket.MessageBinary, data)
		case <-resized:
			rows, columns := t.size()
			err = wsjson.Write(ctx, conn, sdk.TerminalMessage{Type: "resize", Rows: int32(rows), Columns: int32(columns)})
		case <-ctx.Done():
			return
		}
		if err != nil {
			return // reading tells
		}
	}
}
