// Package installation identifies an installation and checks that the servers that share its
// records also share the rest of its state.
package installation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

const (
	// BeatEvery is how often a server renews its entry in the records.
	BeatEvery = 5 * time.Second
	// DeadAfter is the age of an entry above which its server counts as gone.
	DeadAfter = 4 * BeatEvery
)

// Member is a server that uses the records of an installation.
type Member struct {
	Executor string // unique in the installation, the same after a restart
	Host     string

	// Identities of the parts that servers share: equal exactly if both servers reach the same
	// part. "" stands for a part that only this server reaches.
	Bus, Blobs, Volumes string
}

// Seen is a member with the age of its entry.
type Seen struct {
	Member
	Age time.Duration
}

// Store keeps the installation's id and its members. Ages follow the database's clock.
type Store interface {
	// ID returns the installation's id. The first call makes it.
	ID(ctx context.Context) (string, error)
	// Members returns the servers with an entry, the given executor's excepted.
	Members(ctx context.Context, executor string) ([]Seen, error)
	// Beat writes or renews a server's entry.
	Beat(ctx context.Context, m Member) error
	// Leave deletes a server's entry.
	Leave(ctx context.Context, executor string) error
}

// Fits reports why two servers cannot share records: one would declare the executions of the
// other lost, or return empty output for them.
func (m Member) Fits(other Member) error {
	var wrong []string
	for _, part := range []struct{ setting, here, there string }{
		{"nats", m.Bus, other.Bus}, {"blobs", m.Blobs, other.Blobs}, {"volumes", m.Volumes, other.Volumes},
	} {
		switch {
		case part.here == "":
			wrong = append(wrong, part.setting+" (not set on this server)")
		case part.there == "":
			wrong = append(wrong, part.setting+" (not set on the other server)")
		case part.here != part.there:
			wrong = append(wrong, part.setting+" (the servers use different ones)")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "this server shares its database with server %q on host %q, but not %s: set nats, blobs and volumes to the same values on every server, or give this server a database of its own",
		other.Executor, other.Host, strings.Join(wrong, ", "))
}

// Conflict returns why m does not fit a living member; nil if it fits all.
func Conflict(m Member, others []Seen) error {
	for _, other := range others {
		if other.Age > DeadAfter {
			continue
		}
		if err := m.Fits(other.Member); err != nil {
			return err
		}
	}
	return nil
}

// Join enters a server into the records. It fails if a living member does not fit. A member
// that crashed a moment ago looks alive, so Join waits until it renews its entry or counts as gone.
func Join(ctx context.Context, s Store, m Member) error {
	last := map[string]time.Duration{}
	for {
		others, err := s.Members(ctx, m.Executor)
		if err != nil {
			return fmt.Errorf("read the servers that share the records: %w", err)
		}
		conflict := false
		for _, other := range others {
			err := m.Fits(other.Member)
			if err == nil || other.Age > DeadAfter {
				continue
			}
			if before, ok := last[other.Executor]; ok && other.Age < before {
				return err // it has renewed its entry
			}
			last[other.Executor], conflict = other.Age, true
		}
		if !conflict {
			break
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := s.Beat(ctx, m); err != nil {
		return fmt.Errorf("register this server in the database: %w", err)
	}
	others, err := s.Members(ctx, m.Executor) // another server may have joined at the same time
	if err == nil {
		err = Conflict(m, others)
	}
	if err != nil {
		if left := s.Leave(ctx, m.Executor); left != nil {
			return fmt.Errorf("%w (and its entry stays: %w)", err, left)
		}
	}
	return err
}

// lookEvery is how often Join reads the entries of members that do not fit.
const lookEvery = 500 * time.Millisecond
