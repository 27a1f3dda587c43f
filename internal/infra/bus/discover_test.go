package bus

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
)

func TestFindInstallation(t *testing.T) {
	s := startServer(t)
	cfg := Config{URL: s.url(), Name: "exe_1", Log: discard, discoverFor: 300 * time.Millisecond}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := FindInstallation(short, cfg)
	wantFault(t, err, fault.Unavailable, "start a gateway with the same nats, or set installation")

	ctx := deadline(t, time.Minute)
	one := open(t, Config{URL: s.url(), Name: "gw_1", Installation: "ins_1"})
	// Answers that are no id are skipped.
	hostile, err := one.data.Subscribe(installationSubject, func(m *nats.Msg) { _ = m.Respond([]byte("ins_1.>")) })
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() { // before the gateway answers
		id, err := FindInstallation(ctx, cfg)
		if err != nil {
			t.Error(err)
		}
		found <- id
	}()
	for _, b := range []*Bus{one, open(t, Config{URL: s.url(), Name: "gw_2", Installation: "ins_1"})} {
		stop, err := b.AnswerInstallation()
		stopOnce(t, stop, err)
	}
	if id := <-found; id != "ins_1" {
		t.Errorf("found %q", id)
	}
	_ = hostile.Unsubscribe()

	other := open(t, Config{URL: s.url(), Name: "gw_3", Installation: "ins_2"})
	stop, err := other.AnswerInstallation()
	stop = stopOnce(t, stop, err)
	if _, err = FindInstallation(ctx, cfg); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), `"ins_1" and "ins_2"; set installation`) {
		t.Errorf("got %v", err)
	}
	stop()
	if id, err := FindInstallation(ctx, cfg); err != nil || id != "ins_1" {
		t.Errorf("found %q, %v", id, err)
	}
	// An executor that has found it calls the gateways of the installation.
	cfg.Installation = "ins_1"
	answerExecutors(t, one, newAnswerer("gw_1"))
	if got, err := callEcho.Do(ctx, open(t, cfg).Gateways(), "x"); err != nil || got != "exe_1>gw_1:x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := callEcho.Do(ctx, other.Gateways(), "x"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a gateway of another installation answers: %v", err)
	}

	gone, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for what, c := range map[string]Config{"no server": {URL: "nats://127.0.0.1:1", Name: "exe_1"}, "no URL": {Name: "exe_1"}, "no name": {URL: s.url()}, "a bad URL": {URL: "nats://u:geheim@h:x", Name: "exe_1"}} {
		c.Log = discard
		if id, err := FindInstallation(gone, c); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %q, %v", what, id, err)
		}
	}
}
