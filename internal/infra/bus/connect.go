package bus

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"
)

// What the connections are for.
const (
	controlConn = "control" // what is short: jobs, answers, results
	dataConn    = "data"    // logs, so that nothing short waits behind them
)

// connect makes a connection that comes back for ever. While it is away
// nothing is kept to be sent later: callers get an error at once.
func (b *Bus) connect(ctx context.Context, purpose string) (*nats.Conn, error) {
	up := make(chan struct{}, 1)
	log := b.cfg.Log.With("connection", purpose)
	opts := []nats.Option{
		nats.Name("atoll " + b.cfg.Name + " " + purpose),
		nats.CustomInboxPrefix(inboxes + b.cfg.Name), // permissions can hide a server's answers from others
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(20 * time.Second),
		nats.ConnectHandler(func(*nats.Conn) { up <- struct{}{} }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if b.closed.Err() == nil {
				log.Warn("lost the connection to the message bus", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			err := checkServer(nc) // it may be another one of the cluster
			if b.opened.Load() {
				if purpose == dataConn {
					b.unfitData.Store(&err)
				} else {
					b.unfit.Store(&err)
				}
			}
			if err != nil {
				log.Error("reconnected to the message bus, but cannot use its server", "error", err)
			} else {
				log.Info("the message bus is back", "server", nc.ConnectedServerName())
			}
			b.reconnected()
			if purpose == dataConn {
				b.log.ground(time.Now()) // what was asked before may never be answered
			}
			if b.opened.Load() && purpose == controlConn {
				b.waits.recheck(b)
				b.news.wakeAll()
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Error("the message bus reported an error", "error", err)
			if errors.Is(err, nats.ErrSlowConsumer) && b.opened.Load() {
				b.waits.recheck(b) // what was dropped may be a result
				b.log.missed()
				b.news.wakeAll()
			}
		}),
	}
	if b.server != nil {
		opts = append(opts, nats.InProcessServer(b.server))
	}
	opts = append(opts, b.cfg.security()...)
	nc, err := nats.Connect(b.cfg.URL, opts...)
	if err != nil {
		return nil, connectError(err)
	}
	if err := awaitServer(ctx, nc, up); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// awaitServer waits until up reports a connection or ctx ends, and checks the server.
func awaitServer(ctx context.Context, nc *nats.Conn, up <-chan struct{}) error {
	select {
	case <-up:
		return checkServer(nc)
	case <-ctx.Done():
		return fmt.Errorf("connect to NATS: %w", errors.Join(context.Cause(ctx), nc.LastError()))
	}
}

// security returns the options that prove who this client is, and check the server.
func (c Config) security() (opts []nats.Option) {
	if c.Credentials != "" {
		opts = append(opts, nats.UserCredentials(c.Credentials))
	}
	if c.CA != "" {
		opts = append(opts, nats.RootCAs(c.CA))
	}
	if c.Cert != "" {
		opts = append(opts, nats.ClientCert(c.Cert, c.Key))
	}
	return opts
}

func connectError(err error) error {
	if bad, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("its URL cannot be read: %w", bad.Err) // without the URL, which may have a password
	}
	return fmt.Errorf("connect to NATS: %w", err)
}

// connection ends when a connection has come back after it was away: what was
// asked before may never be answered, and readers are known to a server only
// while it lives.
func (b *Bus) connection() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.epoch
}

func (b *Bus) reconnected() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newEpoch()
	b.epoch, b.newEpoch = context.WithCancel(b.closed)
}
