package rig

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/core/execution"
)

func TestParseMetrics(t *testing.T) {
	const text = `# HELP atoll_pool_idle Warm sandboxes that are ready.
# TYPE atoll_pool_idle gauge
atoll_pool_idle{image="default",language="python",preloads="no"} 2
atoll_pool_idle{image="default",language="node",preloads="no"} 3
atoll_pool_idle_other 100
atoll_pool_claims_total{image="default",language="python",preloads="no",result="hit"} 1.5e+01
atoll_pool_claims_total{image="default",language="python",preloads="no",result="miss"} 4
go_goroutines 12
`
	m, err := parseMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"atoll_pool_idle", nil, 5},
		{"atoll_pool_claims_total", nil, 19},
		{"atoll_pool_claims_total", []string{`result="miss"`}, 4},
		{"atoll_pool_claims_total", []string{`result="hit"`, `language="node"`}, 0},
		{"go_goroutines", nil, 12},
		{"nothing", nil, 0},
	} {
		if got := m.Sum(c.name, c.labels...); got != c.want {
			t.Errorf("%s %v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	if _, err := parseMetrics(strings.NewReader("a b\n")); err == nil {
		t.Error("a value that is no number was accepted")
	}
}

func TestParseCPUTimes(t *testing.T) {
	worked, stolen, err := parseCPUTimes("cpu  100 1 20 5000 300 3 4 57 0 0\ncpu0 1 1 1 1 1 1 1 1\n")
	if err != nil || worked != 128*clockTick || stolen != 57*clockTick {
		t.Errorf("%v, %v, %v", worked, stolen, err)
	}
	for _, bad := range []string{"", "cpu 1 2\n", "cpu 1 2 3 4 5 6 7\n", "intr 1 2 3 4 5 6 7 8\n", "cpu a 2 3 4 5 6 7 8\n", "cpu 1 2 3 4 5 6 7 a\n"} {
		if _, _, err := parseCPUTimes(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	a, err := CPUTime()
	if err != nil || a <= 0 {
		t.Errorf("this machine's: %v, %v", a, err)
	}
}

func TestPSS(t *testing.T) {
	got, err := parsePSS("00400000-7fff [rollup]\nRss:    2000 kB\nPss:    1234 kB\nPss_Dirty:   100 kB\n")
	if err != nil || got != 1234<<10 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePSS("Rss: 1 kB\n"); err == nil {
		t.Error("a rollup without Pss was accepted")
	}
	if own, err := readPSS(os.Getpid()); err != nil || own < 1<<20 {
		t.Errorf("our own: %d, %v", own, err)
	}
}

// TestMemoryOfProcesses counts this process's memory once, however often it is named, and
// a child's beside it, which has its own.
func TestMemoryOfProcesses(t *testing.T) {
	child := exec.Command("cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		input.Close()
		_ = child.Wait() // it ends with its input
	}()
	own := os.Getpid()
	pss, spaces, err := memoryOf([]int{own, own, child.Process.Pid})
	if err != nil || spaces != 2 || pss < 1<<20 {
		t.Errorf("%d bytes in %d address spaces, %v", pss, spaces, err)
	}
	// Of five processes two pairs share their memory.
	kept, err := distinct([]int{1, 2, 11, 3, 12}, func(a, b int) (bool, error) { return a%10 == b%10, nil })
	if err != nil || !slices.Equal(kept, []int{1, 2, 3}) {
		t.Errorf("%v, %v", kept, err)
	}
}

func TestMembers(t *testing.T) {
	all := map[int]process{
		1:  {parent: 0, groups: "0::/\n"},
		10: {parent: 1, groups: "4:memory:/atoll/sb-a\n1:cpu:/atoll/sb-a\n"},
		11: {parent: 10, groups: "4:memory:/atoll/sb-a/inner\n"},
		12: {parent: 1, groups: "4:memory:/atoll/sb-ab\n"},
		13: {parent: 1, groups: "0::/\n"},
		14: {parent: 13, groups: "0::/\n"},
	}
	if got := members(all, "sb-a", 10); !slices.Equal(got, []int{10, 11}) {
		t.Errorf("by control group: %v", got)
	}
	if got := members(all, "sb-c", 13); !slices.Equal(got, []int{13, 14}) {
		t.Errorf("by descent: %v", got)
	}
	procs, err := processes()
	if err != nil || procs[os.Getpid()].parent != os.Getppid() {
		t.Errorf("this process: %+v, %v", procs[os.Getpid()], err)
	}
}

func TestImageVariant(t *testing.T) {
	source, store := t.TempDir(), t.TempDir()
	const record = `{"version": 1, "name": "default", "digest": "sha256:0123456789abcdef", "preloads": ["numpy", "pandas"], "extra": {"kept": true},
		"interpreters": [{"language": "python", "path": "/usr/bin/python3", "version": "3.14.0", "site_dir": "/s"}, {"language": "node", "path": "/usr/bin/node"}]}`
	if _, err := openImage(source); err == nil || !strings.Contains(err.Error(), "atoll image build") {
		t.Errorf("a missing image: %v", err)
	}
	if err := os.WriteFile(filepath.Join(source, recordFile), []byte(record), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openImage(source); err == nil || !strings.Contains(err.Error(), "not an EROFS file") {
		t.Errorf("an image without a file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(source, rootfsFile), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	img, err := openImage(source)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Interpreter(execution.Node); got != "/usr/bin/node" {
		t.Errorf("node = %q", got)
	}
	if got := img.String(); got != "default, python 3.14.0, node  (0123456789ab)" {
		t.Errorf("description = %q", got)
	}
	if err := img.copyTo(store, Variant{Languages: []execution.Language{execution.Python}, Preloads: []string{}}); err != nil {
		t.Fatal(err)
	}
	copied, err := openImage(filepath.Join(store, "default"))
	if err != nil {
		t.Fatal(err)
	}
	if len(copied.Preloads) != 0 || len(copied.Interpreters) != 1 || copied.Interpreter(execution.Python) == "" {
		t.Errorf("the copy: %+v", copied)
	}
	var kept struct {
		Extra        struct{ Kept bool }
		Interpreters []struct {
			SiteDir string `json:"site_dir"`
		}
	}
	data, err := os.ReadFile(filepath.Join(store, "default", recordFile))
	if err != nil || json.Unmarshal(data, &kept) != nil || !kept.Extra.Kept || kept.Interpreters[0].SiteDir != "/s" {
		t.Errorf("the copy lost fields: %s, %v", data, err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"1\n", "1\n", true}, {"1\n", "1", false}, {"1\n", "", false}, {"", "2.3.1\n", true}, {"", "", false},
	} {
		if err := (Program{Want: c.want}).check(c.got); (err == nil) != c.ok {
			t.Errorf("want %q, got %q: %v", c.want, c.got, err)
		}
	}
}

func TestRemoveGroups(t *testing.T) {
	if err := removeGroups("atoll-bench-there-is-none"); err != nil {
		t.Error(err)
	}
}

func TestBusy(t *testing.T) {
	busy, err := Busy(t.Context(), 20*time.Millisecond, 1)
	if err != nil || busy < 0 {
		t.Errorf("%v, %v", busy, err)
	}
}
