package bus

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// installationSubject is where gateways answer with their installation's id. It contains no id: servers that
// ask do not know it.
const installationSubject = "atoll.installation"

const (
	discoverFor   = time.Second            // gateways have this time to answer
	discoverEvery = 500 * time.Millisecond // while no gateway runs
	maxAnswers    = 1000                   // that are read
)

// AnswerInstallation answers FindInstallation with this installation's id, until stop is called.
// Only servers that read the id from the database may call it.
func (b *Bus) AnswerInstallation() (stop func(), err error) {
	id := b.cfg.Installation
	if id == "" {
		return func() {}, nil // only this process reaches the bus
	}
	sub, err := b.ctl.Subscribe(installationSubject, func(m *nats.Msg) {
		if len(m.Reply) > len(inboxes) && m.Reply[:len(inboxes)] == inboxes {
			_ = m.Respond([]byte(id)) // they ask again
		}
	})
	if err == nil {
		err = b.ctl.Flush()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails on a closed connection only
}

// FindInstallation asks the gateways of a NATS server for the id of their installation, until one
// answers or ctx ends. It returns an Invalid fault if the NATS server serves several installations.
// cfg needs URL, Name, and the settings that prove who this server is.
func FindInstallation(ctx context.Context, cfg Config) (string, error) {
	if !isToken(cfg.Name) {
		return "", fmt.Errorf("bus: name %q must be letters, digits, - and _", cfg.Name)
	}
	if cfg.URL == "" {
		return "", errors.New("bus: an installation can be found with a URL only")
	}
	nc, err := dial(ctx, cfg)
	if err != nil {
		return "", fmt.Errorf("bus: %w", err)
	}
	defer nc.Close()
	for {
		ids, err := askInstallations(ctx, nc, cfg.Name, cmp.Or(cfg.discoverFor, discoverFor))
		switch {
		case len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", fault.New(fault.Invalid, "the NATS server serves several installations: %q and %q; set installation to the id of the one that this server belongs to", ids[0], ids[1])
		case !pauseFor(ctx, discoverEvery):
			return "", fault.Wrap(fault.Unavailable, errors.Join(context.Cause(ctx), err), "no gateway told the id of its installation over NATS; start a gateway with the same nats, or set installation to its id")
		}
	}
}

// dial connects until ctx ends.
func dial(ctx context.Context, cfg Config) (*nats.Conn, error) {
	up := make(chan struct{}, 1)
	nc, err := nats.Connect(cfg.URL, append(cfg.security(),
		nats.Name("atoll "+cfg.Name+" discovery"), nats.CustomInboxPrefix(inboxes+cfg.Name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond), nats.ReconnectBufSize(-1),
		nats.ConnectHandler(func(*nats.Conn) { up <- struct{}{} }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { // without a handler nats writes to stderr
			cfg.Log.Error("the message bus reported an error", "error", err)
		}),
	)...)
	if err != nil {
		return nil, connectError(err)
	}
	if err := awaitServer(ctx, nc, up); err != nil {
		nc.Close()
		return nil, err
	}
	return nc, nil
}

// askInstallations returns up to two different ids that gateways answer in a time, sorted.
func askInstallations(ctx context.Context, nc *nats.Conn, name string, in time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, in)
	defer cancel()
	inbox := inboxOf(name, rand.Text())
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails on a closed connection only
	if err := nc.PublishMsg(&nats.Msg{Subject: installationSubject, Reply: inbox}); err != nil {
		return nil, err
	}
	var ids []string
	for range maxAnswers {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return ids, err // one at most
		}
		if id := string(m.Data); isToken(id) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if len(ids) == 2 {
			break
		}
	}
	slices.Sort(ids)
	return ids, nil
}
