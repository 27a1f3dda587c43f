package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAcknowledged(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"stream":"S","seq":17}`:                                      true,
		`{"stream":"S", "seq": 18,"duplicate":true}`:                   true,
		`{"error":{"code":503,"err_code":10077},"stream":"S","seq":0}`: false,
		`{"error":{"code":503,"err_code":10077},"stream":"S","seq":9}`: false,
		`{"stream":"S","seq":0}`:                                       false,
		``:                                                             false,
	} {
		if got := acknowledged([]byte(raw)); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

// A stream that refuses for good is given up, and says why.
func TestStoreRefused(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 30*time.Second)
	_, err := b.js.CreateStream(ctx, jetstream.StreamConfig{Name: "SMALL", Subjects: []string{"small"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store(ctx, b.ctl, &nats.Msg{Subject: "small"}); err != nil {
		t.Fatal(err)
	}
	if err := b.store(ctx, b.ctl, &nats.Msg{Subject: "small"}); err == nil {
		t.Error("a full stream took a message")
	}
}
