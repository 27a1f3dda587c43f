package service

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/test/atolltest"
	"github.com/atoll-run/atoll/test/scriptedmodel"
)

// moments are points in the lives of responses that a test waits for.
type moments struct {
	mu   sync.Mutex
	wait map[string]chan struct{}
}

// next is closed when a point is reached by any response.
func (m *moments) next(point string) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{})
	m.wait = map[string]chan struct{}{point: c}
	return c
}

func (m *moments) reached(point string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.wait[point]; c != nil {
		close(c)
		m.wait = nil
	}
}

// plodder is a provider whose model works in three steps: it says something and runs a
// program, runs two programs, and repeats what the programs wrote. Each program writes its
// name and how often it ran in its sandbox. The user says the name of the response.
type plodder struct {
	*moments
	pace time.Duration
}

// plodCalls are the programs of each step.
var plodCalls = []int{1, 2}

func (p *plodder) serve(t testing.TB) *httptest.Server {
	s := httptest.NewServer(&scriptedmodel.Provider{Next: func(r scriptedmodel.Request) (scriptedmodel.Turn, bool) {
		name, results := plodded(r.Body)
		turn, step := plodTurn(name, results)
		if step == 0 {
			t.Errorf("the model of %s was shown %d results", name, len(results))
			return turn, false
		}
		p.reached(fmt.Sprint("asked ", step))
		turn.Pace = p.pace
		turn.Sent = func(n, all int) {
			switch n {
			case 1:
				p.reached(fmt.Sprint("answering ", step))
			case 6:
				p.reached(fmt.Sprint("speaking ", step))
			}
			if n == all {
				p.reached(fmt.Sprint("answered ", step))
			}
		}
		return turn, true
	}})
	t.Cleanup(s.Close)
	return s
}

// plodTurn is the model's next answer, and the step that it belongs to.
func plodTurn(name string, results []string) (turn scriptedmodel.Turn, step int) {
	done := 0
	for i, n := range plodCalls {
		if len(results) == done {
			turn.Blocks = append(turn.Blocks, scriptedmodel.Block{Text: []string{"I ", "am ", "at ", "step ", strconv.Itoa(i + 1)}})
			for j := range n {
				call := done + j + 1
				code := fmt.Sprintf("import time\nwith open('/tmp/%[1]s-%[2]d', 'a') as f: f.write('x')\nprint('begun', flush=True)\ntime.sleep(0.3)\nprint('<%[1]s %[2]d', len(open('/tmp/%[1]s-%[2]d').read()), end='>')", name, call)
				arguments, _ := json.Marshal(map[string]string{"language": "python", "code": code})
				half := len(arguments) / 2
				turn.Blocks = append(turn.Blocks, scriptedmodel.Block{Call: &scriptedmodel.Call{ID: fmt.Sprint("call_", call), Name: "run_code", Arguments: []string{string(arguments[:half]), string(arguments[half:])}}})
			}
			turn.Usage = &model.Usage{Input: 10, Output: 5}
			return turn, i + 1
		}
		done += n
	}
	if len(results) != done {
		return turn, 0
	}
	var said []string
	for _, r := range results {
		_, r, _ = strings.Cut(r, "<")
		r, _, _ = strings.Cut(r, ">")
		said = append(said, r, "; ")
	}
	turn = scriptedmodel.Say("")
	turn.Blocks[0].Text = said
	return turn, len(plodCalls) + 1
}

// plodded is the question in a request, and the results in it.
func plodded(body map[string]any) (name string, results []string) {
	items, _ := body["input"].([]any)
	for _, it := range items {
		switch it := it.(map[string]any); {
		case it["type"] == "function_call_output":
			results = append(results, fmt.Sprint(it["output"]))
		case it["role"] == "user":
			parts, _ := it["content"].([]any)
			first, _ := parts[0].(map[string]any)
			name = fmt.Sprint(first["text"])
		}
	}
	return name, results
}

// responseEvent is an event of a response's stream as a client has it.
type responseEvent struct {
	Type     string
	Sequence int64           `json:"sequence_number"`
	Index    int             `json:"output_index"`
	Response *responseRecord `json:"response"`
	raw      string
}

// responseRecord is a response as a client has it.
type responseRecord struct {
	ID, Status string
	Incomplete struct{ Reason, Message string } `json:"incomplete_details"`
	Error      *struct{ Code, Message string }
	Output     []struct {
		Type, Status, ID string
		Container        string `json:"container_id"`
		Code             string
		Content          []struct{ Text string }
		Results          []struct {
			Stdout, Stderr, Status string
			Exit                   int `json:"exit_code"`
		}
	}
	Usage struct {
		Input     int64                               `json:"input_tokens"`
		Output    int64                               `json:"output_tokens"`
		Total     int64                               `json:"total_tokens"`
		Estimated int64                               `json:"estimated_tokens"` // of answers that a kill cut
		Details   map[string]struct{ Invocation int } `json:"tool_calls_details"`
	}
}

var errCut = errors.New("the stream was cut")

// readResponse reads a response's stream after an event until it ends or is cut.
func readResponse(ctx context.Context, s *atolltest.Server, id string, after int64, each func(responseEvent)) error {
	path := s.URL + "/v1/responses/" + id + "?stream=true"
	if after >= 0 {
		path += fmt.Sprint("&starting_after=", after)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+atolltest.Key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(errCut, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: HTTP %d", errCut, res.StatusCode)
	}
	in := bufio.NewReader(res.Body)
	for {
		line, err := in.ReadString('\n')
		if err != nil { // a line that is cut is no event
			return errors.Join(errCut, err)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		e := responseEvent{raw: data}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return fmt.Errorf("%w: %s", err, data)
		}
		each(e)
		if e.Response != nil && e.Response.Status != "in_progress" && e.Response.Status != "queued" {
			return nil
		}
	}
}

// checkPlodded checks a response of the plodder after its end, and what followers of it saw
// against what a reader sees now. It returns the id of its sandbox, and how many calls were
// lost with the machine that they ran on; none may be unless lossy.
func checkPlodded(t testing.TB, s *atolltest.Server, name, id string, seen []responseEvent, lossy bool) (sandbox string, lost int) {
	t.Helper()
	var r responseRecord
	s.Must(t, atolltest.Key, http.MethodGet, "/v1/responses/"+id, nil).Into(t, http.StatusOK, &r)
	said, calls, answer := "", 0, ""
	for _, it := range r.Output {
		switch {
		case it.Type == "sandbox_results":
			calls++
			sandbox = it.Container
			want := fmt.Sprintf("begun\n<%s %d 1>", name, calls)
			switch {
			case len(it.Results) == 1 && it.Status == "completed" && it.Results[0].Stdout == want:
				answer += fmt.Sprintf("%s %d 1; ", name, calls)
			case len(it.Results) == 1 && lossy && it.Status == "failed" && strings.Contains(it.Results[0].Stderr, "lost"):
				lost++
				answer += "; "
			default:
				t.Errorf("%s, call %d: %+v, want %q", name, calls, it, want)
			}
		case it.Type != "message":
			t.Errorf("%s has an item %+v", name, it)
		case it.Status == "completed":
			said = it.Content[0].Text // the last one counts
		case it.Status != "incomplete":
			t.Errorf("%s has a message %+v", name, it)
		}
	}
	total := 0
	for _, n := range plodCalls {
		total += n
	}
	if r.Status != "completed" || said != answer || calls != total {
		t.Errorf("%s (%s) ends %s with %d calls and %q, want %q\n%s", name, id, r.Status, calls, said, answer, s.Log())
	}
	steps := int64(len(plodCalls) + 1)
	if u := r.Usage; u.Input < 10*steps || u.Output < 5*steps || u.Total-u.Estimated != 15*steps || u.Details["sandbox"].Invocation != total {
		t.Errorf("%s used %+v", name, u)
	}
	var again []responseEvent
	if err := readResponse(t.Context(), s, id, -1, func(e responseEvent) { again = append(again, e) }); err != nil {
		t.Errorf("%s read again: %v", name, err)
	}
	compareEvents(t, name, seen, again)
	return sandbox, lost
}

func compareEvents(t testing.TB, name string, seen, again []responseEvent) {
	t.Helper()
	for i := range max(len(seen), len(again)) {
		if i >= len(seen) || i >= len(again) || seen[i].raw != again[i].raw {
			get := func(events []responseEvent) string {
				if i < len(events) {
					return events[i].raw
				}
				return "nothing"
			}
			t.Errorf("%s: of %d and %d events, number %d was\n%s\nand is now\n%s", name, len(seen), len(again), i, get(seen), get(again))
			return
		}
		if seen[i].Sequence != int64(i) {
			t.Errorf("%s: event %d has the number %d", name, i, seen[i].Sequence)
			return
		}
	}
}
