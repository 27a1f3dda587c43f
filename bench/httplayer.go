package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

// httpClients keep their connections open. They share the machine with the
// server, so the figures are lower than what the server could do alone.
const httpClients = 8

// httpLayer measures requests that are answered before any sandbox is involved.
func httpLayer(ctx context.Context, b *bench) (_ []report.Row, err error) {
	s, err := b.rig.Serve(ctx, rig.Options{PoolSize: 0})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	var rows []report.Row
	for _, c := range []struct {
		name   string
		status int
	}{
		{"HTTP layer alone: wrong key (401)", http.StatusUnauthorized},
		{"HTTP layer alone: wrong field (400)", http.StatusBadRequest},
	} {
		t, err := closedLoop(ctx, httpClients, time.Second, b.window(10*time.Second), func(ctx context.Context) error {
			return s.Reject(ctx, c.status)
		})
		if err != nil {
			return rows, err
		}
		rows = append(rows, report.Row{
			Case: c.name, Unit: "requests/s", Measured: t.perSecond(), Sample: t.each.Summary(), Must: report.AtLeast(5000),
			Note: "8 clients that keep their connections, on the same cores",
		})
	}
	return rows, nil
}
