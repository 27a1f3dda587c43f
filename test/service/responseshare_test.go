package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/test/atolltest"
)

// killedBesideAnother kills one of two servers on the same records and bus while
// it drives responses in model calls and sandbox calls, and a session's turn with three agents at
// work for it. The other one takes them on when
// their leases end, and those who read their streams through it notice nothing but a pause.
func killedBesideAnother(t *testing.T) {
	env := append(sharing(t), "ATOLL_MODEL_ALLOW=127.0.0.1", "ATOLL_ON_EXIT=detach", noPool)
	survivor := atolltest.Start(t, atolltest.Options{Env: append(env, "ATOLL_ON_EXIT=destroy")})
	victim, err := atolltest.Launch(t.Context(), atolltest.Options{Env: env})
	if err != nil {
		t.Fatal(err)
	}
	data := victim.Keep(t)
	t.Cleanup(func() { // what it left on the machine
		ctx := context.Background()
		_ = victim.Signal(syscall.SIGKILL)
		_ = victim.Wait(ctx)
		heir, err := atolltest.Launch(ctx, atolltest.Options{Data: data, Env: append(env, "ATOLL_ON_EXIT=destroy"), NotReady: true})
		if err == nil {
			err = heir.Close()
		}
		if err == nil {
			err = atolltest.Trace(data).Gone(ctx)
		}
		if err != nil {
			t.Error(err)
		}
	})
	m := &moments{}
	p := &plodder{moments: m, pace: 20 * time.Millisecond}
	addModel(t, survivor, "plodder", p.serve(t).URL)

	hand := handedOn(t, victim, survivor)
	const n = 8
	var readers sync.WaitGroup
	followers := make([]*follower, n)
	ends := make([]time.Time, n)
	running := m.next("called 2") // of the first one: the others are in earlier steps
	for i := range n {
		f := &follower{name: fmt.Sprint("shared-", i)}
		followers[i] = f
		a := victim.Must(t, atolltest.Key, http.MethodPost, "/v1/responses", map[string]any{
			"model": "plodder", "input": f.name, "background": true, "tools": []any{map[string]string{"type": "sandbox"}},
		})
		var r responseRecord
		if a.Into(t, http.StatusOK, &r); json.Unmarshal(a.Body, &r) != nil {
			t.Fatalf("got %s", a.Body)
		}
		f.id = r.ID
		readers.Go(func() {
			called := 0
			f.err = readResponse(t.Context(), survivor, f.id, -1, func(e responseEvent) {
				f.seen = append(f.seen, e)
				if e.Type == "response.output_item.added" {
					called++
					m.reached(fmt.Sprint("called ", called-1)) // the first item is a message
				}
			})
			ends[i] = time.Now()
		})
	}
	talk := sessionOf(t, victim, survivor)
	select {
	case <-running:
	case <-time.After(time.Minute):
		t.Fatalf("no response gets anywhere\n%s", victim.Log())
	}
	if err := victim.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	readers.Wait()
	talk()
	hand()

	began := map[string]int{}
	for _, rows := range responseTrail(t, survivor) {
		for _, row := range rows {
			if row.Source == "response" && row.ExitStatus != "provisioning" {
				began[row.Session]++
			}
		}
	}
	lost := 0
	for i, f := range followers {
		if f.err != nil {
			t.Errorf("%s (%s) was not read to its end: %v after %d events\n%s", f.name, f.id, f.err, len(f.seen), survivor.Log())
			continue
		}
		sandbox, gone := checkPlodded(t, survivor, f.name, f.id, f.seen, true)
		lost += gone
		if n := began[sandbox]; n != 3 {
			t.Errorf("%s has %d executions", f.name, n)
		}
		// A minute without the machine, until that is noticed, and a turn of the model.
		if took := ends[i].Sub(killed); took > 2*time.Minute {
			t.Errorf("%s ended only %s after the kill", f.name, took)
		}
		t.Logf("%s ended %s after the kill, %d calls lost", f.name, ends[i].Sub(killed).Round(100*time.Millisecond), gone)
	}
	t.Logf("%d calls were lost with the machine", lost)
}

// sessionOf begins a turn of a session in one server, which another one goes on with. What it
// returns reads the events there, from the first to the end of the turn.
func sessionOf(t *testing.T, victim, survivor *atolltest.Server) (read func()) {
	t.Helper()
	begun := (&talker{t, &succession{TB: t, server: victim}, atolltest.Key, ""}).begin(map[string]any{
		"model": map[string]string{"name": "plodder"}, "tools": []any{map[string]string{"type": "sandbox"}},
	})
	if err := beginTurn(t, begun, "shared-session", &struct{}{}); err != nil {
		t.Fatal(err)
	}
	k := &talker{t, &succession{TB: t, server: survivor}, begun.key, begun.path}
	var told []sessionEvent
	failed := make(chan error, 1)
	go func() {
		failed <- k.follow(t.Context(), http.MethodGet, "/events/stream", nil, "", func(e sessionEvent) bool {
			told = append(told, e)
			return e.Status != "idle"
		})
	}()
	return func() {
		if err := atolltest.Heard(t, failed, "the turn ends"); err != nil {
			t.Fatal(err)
		}
		k.readAgain(told)
		calls := map[string]int{}
		for _, e := range told {
			calls[e.Type]++
		}
		if last := told[len(told)-1]; last.StopReason.Type != "end_turn" || calls["tool_use"] != 3 || calls["tool_result"] != 3 {
			t.Errorf("the turn ended with %+v after %v", last, calls)
		}
		if last := k.send(message("shared-again"), "completed", ""); last.Error != nil {
			t.Errorf("the turn after it: %+v", last)
		}
	}
}

// readAgain has a session read again what it told.
func (k *talker) readAgain(told []sessionEvent) {
	k.Helper()
	if got := raws(k.events("")); !slices.Equal(got, raws(told)) {
		k.Errorf("read again the session has\n%s\nand was told\n%s", strings.Join(got, "\n"), strings.Join(raws(told), "\n"))
	}
}
