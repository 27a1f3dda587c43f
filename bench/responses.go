package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// responding is a server whose models are those of a scripted provider.
type responding struct {
	*rig.Server
	provider *provider
	rows     []report.Row
}

// part is a case, or several, that can be measured alone.
type part struct {
	name string // the group's, "/", and its own
	run  func(context.Context, *bench, *responding) error
}

// responseParts is what the group responses measures, in the order of the table.
var responseParts = []part{
	{"responses/one", oneResponse}, {"responses/waiting", waitingRuns}, {"responses/streams", manyAnswers}, {"responses/background", inBackground},
}

func partNames() []string {
	var names []string
	for _, p := range slices.Concat(responseParts, sessionParts) {
		names = append(names, p.name)
	}
	return names
}

// responses measures what is between a caller and a model: the run and its log, beside
// the provider asked straight.
func responses(ctx context.Context, b *bench) ([]report.Row, error) {
	return modelled(ctx, b, responseParts)
}

// modelled measures parts, each with a server whose models are scripted.
func modelled(ctx context.Context, b *bench, parts []part) (_ []report.Row, err error) {
	p, err := newProvider()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	var rows []report.Row
	for _, part := range parts {
		if len(b.parts) > 0 && !slices.Contains(b.parts, part.name) {
			continue
		}
		// Each has a server of its own: what one leaves would count in the next.
		err := func() (err error) {
			s, err := b.rig.Serve(ctx, rig.Options{PoolSize: -1, Args: []string{"--model-allow=127.0.0.1"}})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Stop()) }()
			r := &responding{Server: s, provider: p}
			for name, under := range map[string]string{"scripted": "/v1", "stamped": "/stamps/v1"} {
				if _, err := s.Administer(ctx, http.MethodPost, "/v1/admin/models", map[string]any{"name": name, "provider": "openai", "base_url": p.base + under}); err != nil {
					return err
				}
			}
			err = part.run(ctx, b, r)
			rows = append(rows, r.rows...)
			return err
		}()
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (r *responding) add(row report.Row) { r.rows = append(r.rows, row) }

// question is a request for a response; word says what the model does.
func question(word string, more map[string]any) map[string]any {
	body := map[string]any{"model": "scripted", "input": word}
	for name, v := range more {
		body[name] = v
	}
	return body
}

var sandboxTool = []any{map[string]string{"type": "sandbox"}}

// ended is a response, as far as it is looked at.
type ended struct {
	ID, Status string
	Output     []struct {
		Type    string
		Status  string
		Content []struct{ Text string }
		Results []struct{ Stdout string }
	}
}

// respond makes a response, which must say something in the end.
func (r *responding) respond(ctx context.Context, body map[string]any) (time.Duration, error) {
	begun := time.Now()
	answer, err := r.Call(ctx, http.MethodPost, "/v1/responses", body)
	took := time.Since(begun)
	if err != nil {
		return took, err
	}
	return took, checkResponse(answer, body)
}

func checkResponse(answer []byte, body map[string]any) error {
	var out ended
	if err := json.Unmarshal(answer, &out); err != nil {
		return err
	}
	if n := len(out.Output); out.Status != "completed" || n == 0 || len(out.Output[n-1].Content) != 1 || out.Output[n-1].Content[0].Text != spoken {
		return fmt.Errorf("the response to %v is %.600s", body["input"], answer)
	}
	for _, it := range out.Output[:len(out.Output)-1] {
		if it.Type != "sandbox_results" || it.Status != "completed" || len(it.Results) != 1 || it.Results[0].Stdout != "1\n" {
			return fmt.Errorf("the response to %v is %.600s", body["input"], answer)
		}
	}
	return nil
}

// streamed reads server-sent events until a line has what is looked for, and then to the
// end. It returns how long that took from begun.
func streamed(in io.ReadCloser, begun time.Time, want string) (first time.Duration, err error) {
	defer in.Close()
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if first == 0 && strings.Contains(line, want) {
			first = time.Since(begun)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	if first == 0 {
		return 0, fmt.Errorf("the stream has no %s", want)
	}
	return first, nil
}

const firstToken = `"response.output_text.delta"`

// more is what a response takes beyond the same without Atoll.
func more(name string, c *compared, must, aim float64) report.Row {
	p50 := func(s report.Sample) float64 { return report.Milliseconds(s.Percentile(50)) }
	r := report.Row{
		Case: name, Unit: "ms", Measured: p50(c.measured) - p50(c.beside), Sample: c.measured.Summary(), BaselineSample: c.beside.Summary(),
		Must: report.AtMost(must), Aim: report.AtMost(aim), Note: fmt.Sprintf("%.2f ms beside %.2f ms: %s", p50(c.measured), p50(c.beside), c.name),
	}
	if c.failed != nil {
		r.Err = fmt.Sprintf("the baseline, %s: %s", c.name, c.failed)
	}
	return r
}

// oneResponse measures responses one at a time.
func oneResponse(ctx context.Context, b *bench, r *responding) error {
	n := b.count(300)
	c, err := compare(n, func() (time.Duration, error) { return r.respond(ctx, question("say", nil)) },
		baseline{"the provider asked straight", n, func() (time.Duration, error) { return r.provider.ask(ctx, "say", "") }})
	if err != nil {
		return err
	}
	r.add(more("a response without tools beyond the model's call, p50", c, 3, 1))

	c, err = compare(n, func() (time.Duration, error) {
		begun := time.Now()
		in, err := r.Open(ctx, http.MethodPost, "/v1/responses", question("say", map[string]any{"stream": true}))
		if err != nil {
			return 0, err
		}
		return streamed(in, begun, firstToken)
	}, baseline{"the provider asked straight", n, func() (time.Duration, error) { return r.provider.ask(ctx, "say", firstToken) }})
	if err != nil {
		return err
	}
	r.add(more("the first token streamed beyond the provider's, p50", c, 3, 1))

	n = b.count(60)
	c, err = compare(n, func() (time.Duration, error) {
		if err := r.Settle(ctx); err != nil {
			return 0, err
		}
		return r.respond(ctx, question("call 1", map[string]any{"tools": sandboxTool}))
	}, baseline{"two calls of the model and one execution", n, func() (time.Duration, error) {
		if err := r.Settle(ctx); err != nil {
			return 0, err
		}
		begun := time.Now()
		if _, err := r.provider.ask(ctx, "call 1", ""); err != nil {
			return 0, err
		}
		if _, err := r.Execute(ctx, pythonHello); err != nil {
			return 0, err
		}
		_, err := r.provider.ask(ctx, "say", "")
		return time.Since(begun), err
	}})
	if err != nil {
		return err
	}
	r.add(more("a response with a sandbox call beyond its parts, p50", c, 8, 3))
	return nil
}
