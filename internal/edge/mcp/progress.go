package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reportEvery is how often a client learns that a call continues. Clients that
// give up on silent calls wait for a minute or so.
const reportEvery = time.Second

// report tells a client that asked for it that its call continues, until the
// function that it returns is called.
func report(ctx context.Context, in *mcp.CallToolRequest) (done func()) {
	token := in.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reports sync.WaitGroup
	reports.Go(func() {
		started := time.Now()
		tick := time.NewTicker(reportEvery)
		defer tick.Stop()
		told := time.Duration(0)
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			took := time.Since(started).Round(time.Second)
			if took <= told { // the protocol has progress increase; a tick was late
				continue
			}
			told = took
			if in.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: took.Seconds(), Message: fmt.Sprintf("%s: running for %s", in.Params.Name, took),
			}) != nil {
				return // the client has gone
			}
		}
	})
	return func() {
		cancel()
		reports.Wait()
	}
}
