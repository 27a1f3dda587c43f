package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-run/atoll/internal/app/module"
	"github.com/atoll-run/atoll/internal/node/disk"
)

// diskModule watches the data folder's file system.
type diskModule struct {
	*process

	*disk.Guard
}

// Start implements module.Part.
func (m *diskModule) Start(context.Context, *module.Undo) error {
	m.Guard = disk.New(disk.Config{Dir: m.cfg.Settings.DataDir, Bytes: int64(m.cfg.Settings.MinFreeDisk)})
	for _, g := range []struct {
		name, help string
		value      func(disk.Usage) int64
	}{
		{"atoll_disk_free_bytes", "Free space where the data folder is.", func(u disk.Usage) int64 { return u.Free }},
		{"atoll_disk_size_bytes", "Size of the file system that the data folder is on.", func(u disk.Usage) int64 { return u.Size }},
	} {
		if err := m.cfg.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, func() float64 {
			u, _ := m.Usage() // 0 when it cannot be told, which alerts too
			return float64(g.value(u))
		})); err != nil {
			return err
		}
	}
	return nil
}
