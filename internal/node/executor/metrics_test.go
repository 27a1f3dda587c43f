package executor

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestFiguresAreThereAtZero: a rate needs a first value.
func TestFiguresAreThereAtZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := newMetrics(reg); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if want := reflect.TypeFor[metrics]().NumField(); len(families) != want {
		t.Errorf("of %d figures, %d are there before they first happen: %v", want, len(families), families)
	}
}
