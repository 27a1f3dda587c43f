package bus

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestAcknowledged(t *testing.T) {
	for raw, want := range map[string]uint64{
		`{"stream":"S","seq":17}`:                                      17,
		`{"stream":"S", "seq": 18,"duplicate":true}`:                   18,
		`{"error":{"code":503,"err_code":10077},"stream":"S","seq":0}`: 0,
		`{"stream":"S","seq":0}`:                                       0,
		``:                                                             0,
	} {
		if got, ok := acknowledged([]byte(raw)); got != want || ok != (want > 0) {
			t.Errorf("%s: %d, %v", raw, got, ok)
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
	if seq, err := b.store(ctx, b.ctl, &nats.Msg{Subject: "small"}); err != nil || seq != 1 {
		t.Fatalf("%d, %v", seq, err)
	}
	if _, err := b.store(ctx, b.ctl, &nats.Msg{Subject: "small"}); err == nil {
		t.Error("a full stream took a message")
	}
}
