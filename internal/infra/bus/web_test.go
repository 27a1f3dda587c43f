package bus

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
)

// web makes calls; those of the path "/wait" end with their context alone.
type web struct {
	begun chan struct{}
	ended chan error
}

func (w *web) CallWeb(ctx context.Context, c execution.WebCall) (execution.WebAnswer, error) {
	switch c.Path {
	case "/wait":
		w.begun <- struct{}{}
		<-ctx.Done()
		w.ended <- ctx.Err()
		return execution.WebAnswer{Status: 499, Body: []byte(c.TraceID)}, nil
	case "/fail":
		return execution.WebAnswer{}, errors.New("secret detail")
	}
	return execution.WebAnswer{Status: 200, RetryAfter: "3", Body: append([]byte(c.Tenant+c.Key+c.TraceID), c.Body...)}, nil
}

func TestWebCalls(t *testing.T) {
	b := embedded(t)
	c := execution.WebCall{TraceID: "trc_1", Tenant: "ten_1", Key: "key_1", Path: "/search", Body: bytes.Repeat([]byte("x"), execution.MaxWebAnswer-15)}
	if _, err := b.Web().CallWeb(t.Context(), c); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("without a gateway: %v", err)
	}
	w := &web{make(chan struct{}, 10), make(chan error, 10)}
	stop, err := b.ServeWeb(w)
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.Web().CallWeb(t.Context(), c)
	if err != nil || a.Status != 200 || a.RetryAfter != "3" || !bytes.HasPrefix(a.Body, []byte("ten_1key_1trc_1xx")) || len(a.Body) != execution.MaxWebAnswer {
		t.Errorf("got %d, %d bytes, %v", a.Status, len(a.Body), err)
	}
	if a, err := b.Web().CallWeb(t.Context(), execution.WebCall{Path: "/fail"}); err != nil || a.Status != 502 || bytes.Contains(a.Body, []byte("detail")) {
		t.Errorf("of a failure: %+v, %v", a, err)
	}

	// A call that is given up is ended at the gateway, and its answer is known.
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if a, err := b.Web().CallWeb(ctx, execution.WebCall{TraceID: "trc_2", Path: "/wait"}); err != nil || string(a.Body) != "trc_2" {
		t.Errorf("given up: %+v, %v", a, err)
	}
	<-w.begun
	if err := <-w.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended by %v", err)
	}

	// The end of the gateway ends what it has under way.
	var under sync.WaitGroup
	for range 3 {
		under.Go(func() {
			if a, err := b.Web().CallWeb(t.Context(), execution.WebCall{Path: "/wait"}); err != nil || a.Status != 499 {
				t.Errorf("at the end: %+v, %v", a, err)
			}
		})
		<-w.begun
	}
	stop()
	under.Wait()
	if _, err := b.Web().CallWeb(t.Context(), c); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("after the end: %v", err)
	}
}
