package sandboxes

import (
	"github.com/atoll-run/atoll/internal/core/sandbox"
	"github.com/prometheus/client_golang/prometheus"
)

// figures are what a Manager tells of its sandboxes.
var (
	statesDesc          = prometheus.NewDesc("atoll_sandboxes", "Named sandboxes of this machine, by state.", []string{"state"}, nil)
	checkpointBytesDesc = prometheus.NewDesc("atoll_sandbox_checkpoint_bytes", "Disk space that the checkpoints of sleeping named sandboxes take.", nil, nil)
	usersDesc           = prometheus.NewDesc("atoll_sandboxes_in_use", "Named sandboxes that are in use right now.", nil, nil)
)

var _ prometheus.Collector = (*Manager)(nil)

// Describe implements prometheus.Collector.
func (m *Manager) Describe(ch chan<- *prometheus.Desc) {
	ch <- statesDesc
	ch <- usersDesc
	ch <- checkpointBytesDesc
}

// Count returns the number of named sandboxes that count towards Config.MaxSandboxes.
func (m *Manager) Count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byID)
}

// Collect implements prometheus.Collector.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	count := map[sandbox.State]int{sandbox.Creating: 0, sandbox.Running: 0, sandbox.Sleeping: 0, sandbox.Lost: 0}
	used := 0
	m.mu.Lock()
	for _, e := range m.byID {
		count[e.sb.State]++
		if e.users > 0 {
			used++
		}
	}
	m.mu.Unlock()
	for state, n := range count {
		ch <- prometheus.MustNewConstMetric(statesDesc, prometheus.GaugeValue, float64(n), string(state))
	}
	ch <- prometheus.MustNewConstMetric(checkpointBytesDesc, prometheus.GaugeValue, float64(m.checkpointsSize()))
	ch <- prometheus.MustNewConstMetric(usersDesc, prometheus.GaugeValue, float64(used))
}
