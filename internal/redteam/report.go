package redteam

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Result is the outcome of one case.
type Result struct {
	Case     Case
	Verdict  Verdict
	Evidence string // of a FAIL what was seen, of a SKIP why; "" for a PASS
	Took     time.Duration
}

// Report is the outcome of a run.
type Report struct {
	Server  string
	Started time.Time
	Took    time.Duration
	Results []Result
}

// Count returns how many cases have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for _, c := range r.Results {
		if c.Verdict == v {
			n++
		}
	}
	return n
}

// Line is a result as one line of text, and its evidence below.
func (r Result) Line() string {
	line := fmt.Sprintf("%s  %-42s %6.1fs", r.Verdict, r.Case.ID, r.Took.Seconds())
	if r.Evidence == "" {
		return line
	}
	if r.Verdict == Fail {
		line += fmt.Sprintf("  %s: %s\n      holds when: %s", r.Case.Severity, r.Case.Tries, r.Case.Holds)
	}
	return line + "\n      " + strings.ReplaceAll(strings.TrimSpace(r.Evidence), "\n", "\n      ")
}

// Summary is the last line of a report.
func (r *Report) Summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped in %.1fs", r.Count(Pass), r.Count(Fail), r.Count(Skip), r.Took.Seconds())
}

// Text writes a report for people.
func (r *Report) Text(w io.Writer) error {
	for _, c := range r.Results {
		if _, err := fmt.Fprintln(w, c.Line()); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, r.Summary())
	return err
}

type jsonReport struct {
	Server  string     `json:"server"`
	Started time.Time  `json:"started_at"`
	Took    int64      `json:"duration_ms"`
	Passed  int        `json:"passed"`
	Failed  int        `json:"failed"`
	Skipped int        `json:"skipped"`
	Cases   []jsonCase `json:"cases"`
}

type jsonCase struct {
	ID       string   `json:"id"`
	Group    string   `json:"group"`
	Severity Severity `json:"severity"`
	Tries    string   `json:"tries"`
	Holds    string   `json:"holds"`
	Verdict  Verdict  `json:"verdict,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	Took     int64    `json:"duration_ms,omitempty"`
}

func (c Case) json() jsonCase {
	return jsonCase{ID: c.ID, Group: c.Group(), Severity: c.Severity, Tries: c.Tries, Holds: c.Holds}
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// JSON writes a report for programs.
func (r *Report) JSON(w io.Writer) error {
	out := jsonReport{
		Server: r.Server, Started: r.Started, Took: r.Took.Milliseconds(),
		Passed: r.Count(Pass), Failed: r.Count(Fail), Skipped: r.Count(Skip), Cases: []jsonCase{},
	}
	for _, c := range r.Results {
		j := c.Case.json()
		j.Verdict, j.Evidence, j.Took = c.Verdict, c.Evidence, c.Took.Milliseconds()
		out.Cases = append(out.Cases, j)
	}
	return encode(w, out)
}

// ListJSON writes cases without results.
func ListJSON(w io.Writer, cases []Case) error {
	out := []jsonCase{}
	for _, c := range cases {
		out = append(out, c.json())
	}
	return encode(w, out)
}

type junitSuites struct {
	XMLName  xml.Name      `xml:"testsuites"`
	Name     string        `xml:"name,attr"`
	Tests    int           `xml:"tests,attr"`
	Failures int           `xml:"failures,attr"`
	Skipped  int           `xml:"skipped,attr"`
	Time     string        `xml:"time,attr"`
	Suites   []*junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// JUnit writes a report in the XML that CI systems read: a suite for each group.
func (r *Report) JUnit(w io.Writer) error {
	out := junitSuites{Name: "atoll redteam", Tests: len(r.Results), Failures: r.Count(Fail), Skipped: r.Count(Skip), Time: seconds(r.Took)}
	suites := map[string]*junitSuite{}
	for _, c := range r.Results {
		suite := suites[c.Case.Group()]
		if suite == nil {
			suite = &junitSuite{Name: c.Case.Group()}
			suites[suite.Name] = suite
			out.Suites = append(out.Suites, suite)
		}
		j := junitCase{Name: c.Case.ID, Class: "redteam." + suite.Name, Time: seconds(c.Took)}
		suite.Tests++
		switch c.Verdict {
		case Fail:
			suite.Failures++
			j.Failure = &junitMessage{Message: c.Case.Tries, Type: string(c.Case.Severity), Text: c.Evidence}
		case Skip:
			suite.Skipped++
			j.Skipped = &junitMessage{Message: c.Evidence}
		}
		suite.Cases = append(suite.Cases, j)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
