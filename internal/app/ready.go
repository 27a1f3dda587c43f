package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// openDisk watches the data folder's file system.
func (s *Server) openDisk(context.Context) error {
	s.disk = disk.New(disk.Config{Dir: s.cfg.Settings.DataDir, Bytes: int64(s.cfg.Settings.MinFreeDisk)})
	for _, g := range []struct {
		name, help string
		value      func(disk.Usage) int64
	}{
		{"atoll_disk_free_bytes", "Free space where the data folder is.", func(u disk.Usage) int64 { return u.Free }},
		{"atoll_disk_size_bytes", "Size of the file system that the data folder is on.", func(u disk.Usage) int64 { return u.Size }},
	} {
		if err := s.cfg.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, func() float64 {
			u, _ := s.disk.Usage() // 0 when it cannot be told, which alerts too
			return float64(g.value(u))
		})); err != nil {
			return err
		}
	}
	return nil
}

// readyTimeout is how long a part may take to answer before it counts as away.
const readyTimeout = 5 * time.Second

// filling is what a start lacks for a while.
const filling = "sandboxes"

// Ready reports what keeps executions from running now. The error is for
// any client, and so only says which parts it is; the log says why, when that
// changes.
func (s *Server) Ready(asked context.Context) error {
	ctx, cancel := context.WithTimeout(asked, readyTimeout)
	defer cancel()
	var lacking []string
	var reasons []any
	for _, part := range []struct {
		name string
		err  error
	}{
		{"bus", s.bus.Ready()}, {"database", errors.Join(s.db.Ping(ctx), s.writable())}, {"disk", s.disk.Admit()}, {"installation", s.fits()}, {filling, s.engine.Ready(ctx)},
	} {
		if part.err != nil {
			lacking = append(lacking, part.name)
			reasons = append(reasons, part.name, part.err)
		}
	}
	if asked.Err() != nil { // the caller is gone, and the answer may be wrong
		return context.Cause(asked)
	}
	now := strings.Join(lacking, ", ")
	if before := s.lacking.Swap(&now); before == nil || *before != now {
		switch {
		case now == filling:
			s.log.Info("not ready", reasons...)
		case now != "":
			s.log.Warn("not ready", reasons...)
		case before != nil:
			s.log.Info("ready again")
		}
	}
	if now == "" {
		return nil
	}
	return fault.New(fault.Unavailable, "not ready: %s", now)
}
