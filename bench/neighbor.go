package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/bench/report"
)

const (
	hostileReaders = 200 // of one session
	hostileSenders = 6   // of bodies that are as large as may be
	hostileList    = 2_600_000
	hostilePause   = 200 * time.Millisecond
)

// sessionNeighbor measures the executions of a tenant while another one takes all it can get of what
// tenants share: streams of a session, tokens in it, and memory for request bodies.
func sessionNeighbor(ctx context.Context, b *bench, r *responding) error {
	key, err := r.neighbor(ctx)
	if err != nil {
		return err
	}
	n := b.count(300)
	sample := func() (all report.Sample, err error) {
		for range n {
			took, err := r.ExecuteAs(ctx, key, pythonHello)
			if err != nil {
				return nil, err
			}
			all = append(all, took)
		}
		return all, nil
	}
	idle, err := sample()
	if err != nil {
		return err
	}
	before, err := r.RSS()
	if err != nil {
		return err
	}
	var got atomic.Int64
	stop, err := r.hostile(ctx, &got)
	if err != nil {
		return err
	}
	beside, err := sample()
	after, sizeErr := r.RSS()
	if err = errors.Join(err, stop(), sizeErr); err != nil {
		return err
	}
	r.add(report.Row{
		Case: fmt.Sprintf("print(1) beside a tenant with %d readers of a session and %d senders of 8 MiB, p50", hostileReaders, hostileSenders), Unit: "ms",
		Measured: report.Milliseconds(beside.Percentile(50)), Sample: beside.Summary(), Must: report.AtMost(3),
		Baseline: report.Milliseconds(idle.Percentile(50)), BaselineSample: idle.Summary(), BaselineName: "the same on an idle server",
		Note: fmt.Sprintf("resident memory of the server grew by %d MB; the readers got %d MB", (after-before)/1_000_000, got.Load()/1_000_000),
	})
	return nil
}

// counter counts what is written to it.
type counter struct{ bytes *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return len(p), nil
}

// neighbor makes a tenant with a key, and returns the key.
func (r *responding) neighbor(ctx context.Context) (key string, err error) {
	const tenants = "/v1/admin/tenants"
	for _, step := range [][2]any{
		{tenants, map[string]any{"name": "neighbor", "plan": "pro"}},
		{tenants + "/neighbor/environments", map[string]any{"name": "default"}},
		{tenants + "/neighbor/keys", map[string]any{"name": "bench", "environment": "default"}},
	} {
		answer, err := r.Administer(ctx, http.MethodPost, step[0].(string), step[1])
		if err != nil {
			return "", err
		}
		var out struct{ Key string }
		if err := json.Unmarshal(answer, &out); err != nil {
			return "", err
		}
		key = out.Key
	}
	return key, nil
}

// hostile has the rig's own tenant take all it can get, until stop is called. got is how many bytes
// its readers have.
func (r *responding) hostile(ctx context.Context, got *atomic.Int64) (stop func() error, err error) {
	agent, err := r.agent(ctx, "stamped")
	if err != nil {
		return nil, err
	}
	session, err := r.session(ctx, agent)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range hostileReaders {
		in, err := r.Open(ctx, http.MethodGet, session+"/events/stream?deltas=true", nil)
		if err != nil {
			cancel()
			return nil, err
		}
		all.Go(func() {
			_, _ = io.Copy(counter{got}, in) // until stop
			_ = in.Close()
		})
	}
	word := strconv.Itoa(int(time.Hour.Seconds()) * tokens)
	all.Go(func() { _, _ = r.Call(ctx, http.MethodPost, session+"/events", says(word)) })
	body := []byte(`{"model":"stamped","input":[` + strings.Repeat("{},", hostileList) + "{}]}")
	var taken atomic.Int64
	for range hostileSenders {
		all.Go(func() {
			for wait(ctx, hostilePause) == nil { // what this process takes itself is not what is measured
				if status, err := r.Refuse(ctx, "/v1/responses", body); err == nil && status/100 == 2 {
					taken.Add(1)
				}
			}
		})
	}
	return func() error {
		cancel()
		all.Wait()
		if n := taken.Load(); n > 0 {
			return fmt.Errorf("%d lists of millions were taken", n)
		}
		return nil
	}, nil
}
