package bus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestTheFirstDecisionAboutAStartCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, b *Bus) {
		ctx := deadline(t, 30*time.Second)
		s, other := b.Starts(), Starts{&Bus{cfg: Config{Name: "other"}, names: b.names, js: b.js, starts: b.starts}}
		for range 2 { // also when an executor repeats it after a restart
			if may, err := s.Begin(ctx, "trc_begun"); err != nil || !may {
				t.Errorf("begin: %v, %v", may, err)
			}
		}
		if may, err := other.Begin(ctx, "trc_begun"); err != nil || may {
			t.Errorf("begin what another executor began: %v, %v", may, err)
		}
		if voided, err := other.Void(ctx, "trc_begun"); err != nil || voided {
			t.Errorf("void a started execution: %v, %v", voided, err)
		}
		for range 2 {
			if voided, err := other.Void(ctx, "trc_lost"); err != nil || !voided {
				t.Errorf("void: %v, %v", voided, err)
			}
		}
		if may, err := s.Begin(ctx, "trc_lost"); err != nil || may {
			t.Errorf("begin what a gateway declared lost: %v, %v", may, err)
		}
	})
}

// replicated is the JetStream of a replicated stream that is storing another decision.
type replicated struct {
	jetstream.JetStream
	asked int
}

func (r *replicated) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if r.asked++; r.asked == 1 {
		return nil, &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant, Description: "wrong last sequence"}
	}
	return r.JetStream.PublishMsg(ctx, m, opts...)
}

func TestADecisionOnItsWayIsWaitedFor(t *testing.T) {
	b := embedded(t)
	ctx := deadline(t, 10*time.Second)
	other := func() Starts {
		return Starts{&Bus{cfg: Config{Name: "other"}, names: b.names, js: &replicated{JetStream: b.js}, starts: b.starts}}
	}
	if may, err := b.Starts().Begin(ctx, "trc_begun"); err != nil || !may {
		t.Fatalf("begin: %v, %v", may, err)
	}
	if voided, err := other().Void(ctx, "trc_begun"); err != nil || voided {
		t.Errorf("void a started execution: %v, %v", voided, err)
	}
	if voided, err := other().Void(ctx, "trc_new"); err != nil || !voided { // the other decision was never stored
		t.Errorf("void: %v, %v", voided, err)
	}
}
