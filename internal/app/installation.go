package app

import (
	"context"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/core/installation"
)

// join enters this server into the records that it shares with others. A server that does not
// share the bus and the stores as well is refused, before it touches the others' executions.
func (s *Server) join(ctx context.Context) (err error) {
	if s.cfg.Settings.Database == "" {
		return nil // the lock of the data folder keeps others out
	}
	s.member.Executor = s.id
	if s.member.Host, err = os.Hostname(); err != nil {
		return err
	}
	if s.cfg.Settings.NATS != "" {
		if s.member.Bus, err = s.bus.ID(ctx); err != nil {
			return err
		}
	}
	if err := installation.Join(ctx, s.db.Installation(), s.member); err != nil {
		return err
	}
	beats, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.beat(beats)
	}()
	s.later(func(ctx context.Context) error {
		stop()
		<-done
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
		defer cancel()
		return s.db.Installation().Leave(ctx, s.id)
	})
	return nil
}

// beat renews this server's entry and looks for servers that do not fit: one that was frozen
// while another joined finds out here.
func (s *Server) beat(ctx context.Context) {
	tick := time.NewTicker(installation.BeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := s.beatOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.beaten.Store(&err); err != nil {
			s.log.Warn("cannot renew this server's entry in the database", "error", err)
		}
	}
}

func (s *Server) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, installation.BeatEvery)
	defer cancel()
	if s.cfg.Settings.NATS != "" {
		if id, err := s.bus.ID(ctx); err == nil { // its streams may have been made again
			s.member.Bus = id
		}
	}
	if err := s.db.Installation().Beat(ctx, s.member); err != nil {
		return err
	}
	others, err := s.db.Installation().Members(ctx, s.id)
	if err != nil {
		return err
	}
	misfit := installation.Conflict(s.member, others)
	s.misfit.Store(&misfit)
	return nil
}

// fits reports why this server must not go on beside the others.
func (s *Server) fits() error {
	if misfit := s.misfit.Load(); misfit != nil {
		return *misfit
	}
	return nil
}

// writable reports why the shared database took no entry of this server when it was last
// renewed: a database that answers may still be read-only or full.
func (s *Server) writable() error {
	if beaten := s.beaten.Load(); beaten != nil {
		return *beaten
	}
	return nil
}
