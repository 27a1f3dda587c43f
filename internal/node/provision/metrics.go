package provision

import "github.com/prometheus/client_golang/prometheus"

// Labels of builds.
const (
	packagesBuild = "packages"
	variantBuild  = "variant"

	resultReady  = "ready"
	resultFailed = "failed"
)

// newBuilds returns the counter of builds.
func newBuilds() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "atoll_image_builds_total", Help: "Builds of images that ended, by kind (packages: the packages of an environment; variant: a variant of the default image) and result (ready or failed).",
	}, []string{"kind", "result"})
}

func (p *Provisioner) count(kind, result string) { p.ended.WithLabelValues(kind, result).Inc() }
