package report

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine describes what the figures were measured on. Nothing in it names the
// machine or its owner.
type Machine struct {
	CPU         string  `json:"cpu"`
	Virtual     bool    `json:"virtual"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel"`
	Cgroup      string  `json:"cgroup"`
	BusyBefore  float64 `json:"busy_before"` // share of all cores that others used just before the run
	Stolen      float64 `json:"stolen"`      // share of all cores that the host gave to others during the run
	Go          string  `json:"go"`
	GVisor      string  `json:"gvisor"`
	Image       string  `json:"image"`
	Commit      string  `json:"commit"`
}

// Describe reads the description. busy comes from the caller because it takes
// time to measure; runsc is a binary built from gVisor's module.
func Describe(root, runsc, image string, busy float64) Machine {
	m := Machine{
		Cores: runtime.NumCPU(), Go: runtime.Version(), Image: image, BusyBefore: busy,
		GVisor: gvisorVersion(runsc), Commit: commit(root), OS: osName(),
	}
	m.CPU, m.Virtual = cpuModel()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	}
	var st unix.Statfs_t
	m.Cgroup = "none"
	if unix.Statfs("/sys/fs/cgroup", &st) == nil {
		m.Cgroup = "v1"
		if st.Type == unix.CGROUP2_SUPER_MAGIC {
			m.Cgroup = "v2"
		}
	}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	return m
}

func (m Machine) pairs() [][2]string {
	cpu := m.CPU
	if m.Virtual {
		cpu += ", in a virtual machine"
	}
	return [][2]string{
		{"processor", cpu},
		{"cores", strconv.Itoa(m.Cores)},
		{"memory", fmt.Sprintf("%.1f GiB", float64(m.MemoryBytes)/(1<<30))},
		{"system", m.OS},
		{"kernel", m.Kernel},
		{"cgroup", m.Cgroup},
		{"busy before the run", fmt.Sprintf("%.0f %% of all cores", 100*m.BusyBefore)},
		{"taken by the host during it", fmt.Sprintf("%.1f %% of all cores", 100*m.Stolen)},
		{"Go", m.Go},
		{"gVisor", m.GVisor},
		{"image", m.Image},
		{"commit", m.Commit},
	}
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Short names the kind of machine in a file name, such as "2x-amd-epyc-9754".
func (m Machine) Short() string {
	cpu := strings.ToLower(m.CPU)
	for _, noise := range []string{"(r)", "(tm)", "processor", " cpu"} {
		cpu = strings.ReplaceAll(cpu, noise, " ")
	}
	cpu, _, _ = strings.Cut(cpu, "@")
	slug := strings.Trim(notSlug.ReplaceAllString(cpu, "-"), "-")
	return strings.TrimSuffix(fmt.Sprintf("%dx-%.30s", m.Cores, slug), "-")
}

func cpuModel() (model string, virtual bool) {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH, false
	}
	model = runtime.GOARCH
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(key) {
		case "model name":
			model = strings.TrimSpace(value)
		case "flags":
			virtual = strings.Contains(value+" ", " hypervisor ")
		}
	}
	return model, virtual
}

func osName() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return runtime.GOOS
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`)
		}
	}
	return runtime.GOOS
}

func gvisorVersion(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "unknown"
	}
	for _, d := range append(info.Deps, &info.Main) {
		if d.Path == "gvisor.dev/gvisor" {
			return d.Version
		}
	}
	return "unknown"
}

func commit(root string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", filepath.Clean(root)}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	id, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no"); err != nil || changed != "" {
		id += ", with changes"
	}
	return id
}
