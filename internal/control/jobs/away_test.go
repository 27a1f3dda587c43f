package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/test/atolltest"
)

// A database that goes away in the middle of deliveries loses none of them. If
// it stays away for more than River's patience of some 7 seconds, they are taken
// up after rescueAfter and River's next look, so this may take over a minute.
func TestDatabaseAway(t *testing.T) {
	server := atolltest.Postgres(t)
	e := prepare(t, server.URL)
	const webhooks = 10
	begun, gone := make(chan struct{}, 10*webhooks), make(chan struct{})
	c := e.start(t, Config{Deliver: func(context.Context, *execution.Execution) (bool, error) {
		begun <- struct{}{}
		<-gone
		return true, nil
	}})
	for i := range webhooks {
		if err := e.conclude(t.Context(), c, fmt.Sprintf("trc_%d", i), "https://x"); err != nil {
			t.Fatal(err)
		}
	}
	for range webhooks {
		wait(t, begun, "attempt")
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	close(gone)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range webhooks {
		id := fmt.Sprintf("trc_%d", i)
		atolltest.Until(t, 2*time.Minute, id+" is delivered", func() bool {
			x, err := e.db.Executions().Get(t.Context(), tenant, id)
			return err == nil && x.WebhookStatus == execution.WebhookDelivered
		})
	}
}
