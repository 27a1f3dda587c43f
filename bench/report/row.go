package report

import (
	"fmt"
	"math"
	"strconv"
)

// Bound is what a figure must not exceed, or must reach.
type Bound struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"` // a floor; otherwise a ceiling
}

// AtMost returns a ceiling.
func AtMost(v float64) *Bound { return &Bound{Value: v} }

// AtLeast returns a floor.
func AtLeast(v float64) *Bound { return &Bound{Value: v, AtLeast: true} }

func (b *Bound) holds(v float64) bool {
	if b.AtLeast {
		return v >= b.Value
	}
	return v <= b.Value
}

// Verdict says how a row stands.
type Verdict string

// Verdicts of a row.
const (
	Aimed  Verdict = "reaches the aim"
	Passed Verdict = "passes"
	Missed Verdict = "misses"
	Failed Verdict = "FAILED" // it could not be measured, or what ran went wrong
	Info   Verdict = "–"      // nothing was promised
)

// Row is one line of the table.
type Row struct {
	Group    string  `json:"group"` // what -only calls it
	Case     string  `json:"case"`
	Unit     string  `json:"unit"` // "" where nothing could be measured; a note or an error says why
	Measured float64 `json:"measured"`

	// Baseline is measured in the same run and unit; 0 when there is none.
	// Bounds are on measured ÷ baseline then, unless Absolute, and on measured
	// otherwise.
	Baseline     float64 `json:"baseline,omitempty"`
	BaselineName string  `json:"baseline_name,omitempty"`
	Absolute     bool    `json:"absolute,omitempty"`
	Must         *Bound  `json:"must,omitempty"`
	Aim          *Bound  `json:"aim,omitempty"`

	Sample         *Summary `json:"sample,omitempty"` // where measured is a duration
	BaselineSample *Summary `json:"baseline_sample,omitempty"`
	Note           string   `json:"note,omitempty"`
	Err            string   `json:"error,omitempty"`

	Ratio   float64 `json:"ratio,omitempty"`   // filled in by Judge
	Verdict Verdict `json:"verdict,omitempty"` // filled in by Judge
}

// Judge fills in the ratio and the verdict.
func (r Row) Judge() Row {
	figure := r.Measured
	if r.Baseline > 0 {
		r.Ratio = r.Measured / r.Baseline
		if !r.Absolute {
			figure = r.Ratio
		}
	}
	switch {
	case r.Err != "":
		r.Verdict = Failed
	case r.Must == nil && r.Aim == nil:
		r.Verdict = Info
	case r.Must != nil && !r.Must.holds(figure):
		r.Verdict = Missed
	case r.Aim != nil && r.Aim.holds(figure):
		r.Verdict = Aimed
	case r.Must != nil:
		r.Verdict = Passed
	default:
		r.Verdict = Missed
	}
	return r
}

// measured renders the figure, which a row that failed may have all the same: its
// baseline may be what failed.
func (r Row) measured() string {
	if r.Unit == "" || r.Err != "" && r.Measured == 0 {
		return ""
	}
	return quantity(r.Measured, r.Unit)
}

// bound renders a bound in the unit it is on.
func (r Row) bound(b *Bound) string {
	if b == nil {
		return ""
	}
	sign := "≤ "
	if b.AtLeast {
		sign = "≥ "
	}
	if r.BaselineName != "" && !r.Absolute {
		return sign + strconv.FormatFloat(b.Value, 'f', -1, 64) + "×"
	}
	return sign + quantity(b.Value, r.Unit)
}

func (r Row) baseline() string {
	if r.BaselineName == "" || r.Baseline == 0 {
		return r.BaselineName
	}
	return fmt.Sprintf("%s (%s)", quantity(r.Baseline, r.Unit), r.BaselineName)
}

func (r Row) ratio() string {
	if r.Ratio == 0 {
		return ""
	}
	return number(r.Ratio) + "×"
}

func quantity(v float64, unit string) string { return number(v) + " " + unit }

// number writes three significant digits, whole numbers from 100 on, and nothing
// but a 0 for none.
func number(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0"
	case size >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
}
