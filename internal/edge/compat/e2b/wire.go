package e2b

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/control/sandboxes"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/sandbox"
)

// envdVersion is what clients are told of the services in a sandbox. They do without what
// came later.
const envdVersion = "0.6.3"

// NewSandbox is the body that makes a sandbox.
type NewSandbox struct {
	Template        string            `json:"templateID"`
	Timeout         *int64            `json:"timeout,omitzero"` // seconds
	AutoPause       *bool             `json:"autoPause,omitzero"`
	AutoPauseMemory *bool             `json:"autoPauseMemory,omitzero"`
	AutoResume      *AutoResume       `json:"autoResume,omitzero"`
	Secure          *bool             `json:"secure,omitzero"` // it always is
	Internet        *bool             `json:"allow_internet_access,omitzero"`
	Network         *Network          `json:"network,omitzero"`
	Metadata        map[string]string `json:"metadata,omitzero"`
	Env             map[string]string `json:"envVars,omitzero"`
	MCP             jsontext.Value    `json:"mcp,omitzero"`
	IAM             jsontext.Value    `json:"iam,omitzero"`
	Volumes         jsontext.Value    `json:"volumeMounts,omitzero"`
}

// AutoResume says whether use wakes a sandbox.
type AutoResume struct {
	Enabled *bool  `json:"enabled,omitzero"`
	Policy  string `json:"policy,omitzero"` // of older clients
}

// Network is what a sandbox may connect to.
type Network struct {
	AllowOut        []string       `json:"allowOut,omitzero"`
	DenyOut         []string       `json:"denyOut,omitzero"`
	Internet        *bool          `json:"allow_internet_access,omitzero"` // of an update
	AllowPublic     *bool          `json:"allowPublicTraffic,omitzero"`
	MaskRequestHost *string        `json:"maskRequestHost,omitzero"`
	DNSServers      jsontext.Value `json:"dnsServers,omitzero"`
	EgressProxy     jsontext.Value `json:"egressProxy,omitzero"`
	HTTPSPorts      jsontext.Value `json:"httpsPorts,omitzero"`
	Rules           jsontext.Value `json:"rules,omitzero"`
}

// Sandbox is a sandbox as it is made, and connected to.
type Sandbox struct {
	Template string `json:"templateID"`
	ID       string `json:"sandboxID"`
	Client   string `json:"clientID"`
	Envd     string `json:"envdVersion"`
	Token    string `json:"envdAccessToken"`
	Traffic  string `json:"trafficAccessToken"`
	Domain   string `json:"domain"` // behind the names of its hosts
}

// Listed is a sandbox in a list.
type Listed struct {
	Template string            `json:"templateID"`
	ID       string            `json:"sandboxID"`
	Client   string            `json:"clientID"`
	Started  time.Time         `json:"startedAt"`
	End      time.Time         `json:"endAt"`
	CPU      int               `json:"cpuCount"`
	Memory   int64             `json:"memoryMB"`
	Disk     int64             `json:"diskSizeMB"`
	State    string            `json:"state"`
	Envd     string            `json:"envdVersion"`
	Metadata map[string]string `json:"metadata"`
}

// Detail is all of a sandbox.
type Detail struct {
	Listed    `json:",inline"`
	Domain    string    `json:"domain"`
	Token     string    `json:"envdAccessToken"`
	Internet  *bool     `json:"allowInternetAccess"`
	Network   *Network  `json:"network,omitzero"`
	Lifecycle Lifecycle `json:"lifecycle"`
}

// Lifecycle is what becomes of a sandbox whose time is over.
type Lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

// Metric is what a sandbox uses.
type Metric struct {
	Timestamp time.Time `json:"timestamp"`
	Unix      int64     `json:"timestampUnix"`
	CPU       int       `json:"cpuCount"`
	CPUUsed   float64   `json:"cpuUsedPct"`
	MemUsed   int64     `json:"memUsed"`
	MemTotal  int64     `json:"memTotal"`
	MemCache  int64     `json:"memCache"`
	DiskUsed  int64     `json:"diskUsed"`
	DiskTotal int64     `json:"diskTotal"`
}

// Snapshot is a snapshot.
type Snapshot struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// Forked is what became of one copy.
type Forked struct {
	Sandbox *Sandbox `json:"sandbox,omitzero"`
	Error   *Failure `json:"error,omitzero"`
}

func (d *Handlers) listedOf(sb *sandbox.Sandbox) Listed {
	state := "running"
	if sb.State == sandbox.Sleeping {
		state = "paused"
	}
	return Listed{
		Template: sandboxes.Template(sb), ID: d.hosts.Every(sb.ID), Client: "atoll", Started: sb.CreatedAt.UTC(), End: sandboxes.End(sb), CPU: sandboxes.CPUs(sb),
		Memory: sb.Limits.Memory >> 20, Disk: sb.Disk >> 20, State: state, Envd: envdVersion, Metadata: sandboxes.Metadata(sb),
	}
}

func networkOf(p runtime.NetworkPolicy) *Network {
	allow, deny := sandboxes.Opened(p)
	if deny == nil {
		return nil
	}
	return &Network{AllowOut: allow, DenyOut: deny}
}
