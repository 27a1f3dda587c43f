package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/preview"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

// FileEnv names the configuration file in the environment; the flag is
// --config.
const FileEnv = "ATOLL_CONFIG"

// DefaultFile is the configuration file of an installation. It is read when it
// exists and no other file is named.
const DefaultFile = "/etc/atoll/atoll.yaml"

// Sources are where settings come from.
type Sources struct {
	File   string              // path of a YAML file; "" for what FileEnv names, else DefaultFile
	Getenv func(string) string // the environment; an empty value is the same as none
	Flags  map[string]string   // by Setting.Flag, only those that were given

	// DataDir chooses a data folder where none is given; otherwise is the default one. Nil keeps that.
	DataDir func(otherwise string) string
}

// Load reads every source and checks the result. The error lists everything
// that is wrong, each with the setting's name and where it came from.
func Load(src Sources) (*Config, error) {
	if src.File == "" {
		src.File = src.Getenv(FileEnv)
	}
	if src.File == "" {
		src.File = defaultFile(DefaultFile)
	}
	file, err := readFile(src.File)
	if err != nil {
		return nil, err
	}
	var c Config
	var bad []error
	given := map[string]bool{} // by Setting.Name
	for _, s := range Settings() {
		text, from := s.Default, "default"
		if v, ok := file[s.Name]; ok {
			text, from = v, src.File
		}
		if v := src.Getenv(s.Env); v != "" {
			text, from = v, s.Env
		}
		if v, ok := src.Flags[s.Flag]; ok {
			text, from = v, "--"+s.Flag
		}
		given[s.Name] = from != "default"
		if err := s.set(&c, text); err != nil {
			bad = append(bad, fmt.Errorf("%s (from %s): %w", s.Name, from, err))
		}
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	if c.DataDir == "" {
		if c.DataDir, err = defaultDataDir(src.Getenv); err != nil {
			return nil, err
		}
		if src.DataDir != nil {
			c.DataDir = src.DataDir(c.DataDir)
		}
	}
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	if c.StateDir == "" {
		c.StateDir = DefaultStateDir(c.DataDir)
		if c.Runtime == "oci" { // builds sandboxes in the same places
			c.StateDir = filepath.Join(c.DataDir, "state")
		}
	}
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	c.fitFiles(given)
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// fitFiles shrinks the sizes of in-memory files that were not given where they do not
// fit into memory, so that a small memory needs no other setting. The parts are those
// of the defaults.
func (c *Config) fitFiles(given map[string]bool) {
	if c.RootSize+c.TmpSize+c.ShmSize < c.Memory {
		return
	}
	for name, fit := range map[string]struct {
		size *Size
		part Size // of memory
	}{"root_size": {&c.RootSize, 4}, "tmp_size": {&c.TmpSize, 4}, "shm_size": {&c.ShmSize, 8}} {
		if !given[name] {
			*fit.size = min(*fit.size, c.Memory/fit.part)
		}
	}
}

// defaultFile returns path if this user can read a file there, otherwise "": the
// installation's file may hold secrets and be closed to ordinary users.
func defaultFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	_ = f.Close() // nothing was written
	return path
}

// readFile returns the settings in a YAML file as text. A map stays YAML.
func readFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var nodes map[string]yaml.Node
	if err := yaml.Unmarshal(raw, &nodes); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	known := map[string]bool{}
	for _, s := range Settings() {
		known[s.Name] = true
	}
	out := map[string]string{}
	var bad []error
	for name, node := range nodes {
		switch {
		case !known[name]:
			bad = append(bad, fmt.Errorf("%s, line %d: unknown setting %q", path, node.Line, name))
		case node.Kind == yaml.ScalarNode:
			out[name] = node.Value
		case node.Kind == yaml.MappingNode:
			text, err := yaml.Marshal(&node)
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, node.Line, err)
			}
			out[name] = string(text)
		default:
			bad = append(bad, fmt.Errorf("%s, line %d: %s must be a single value", path, node.Line, name))
		}
	}
	return out, errors.Join(bad...)
}

func defaultDataDir(getenv func(string) string) (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/atoll", nil
	}
	if dir := getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "atoll"), nil
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "share", "atoll"), nil
	}
	return "", errors.New("data_dir: HOME is not set; set ATOLL_DATA_DIR")
}

// validate checks what concerns more than one value's form.
func (c *Config) validate() error {
	var bad []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf(format, args...))
		}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	check(err == nil, "listen: %q is not an address and port such as 127.0.0.1:8080", c.Listen)
	c.Loopback = err == nil && isLoopback(host)
	check(err != nil || c.Loopback || c.DevKey == "",
		"dev_key: listen is %s, which reaches beyond loopback, where a fixed key is refused: leave it out, and make keys with 'atoll key create'", c.Listen)
	check(err != nil || c.Loopback || c.Dev == "off",
		"dev: listen is %s, which reaches beyond loopback, where development mode is refused: leave out --dev, or listen on 127.0.0.1", c.Listen)
	if c.PreviewURL != "" {
		_, err := preview.ParseBase(c.PreviewURL)
		check(err == nil, "preview_url: %v", err)
	}
	check((c.TLSCert == "") == (c.TLSKey == ""), "tls_cert and tls_key: set both or neither")
	check(usableKey(c.DevKey), "dev_key: must be at most 256 visible ASCII characters without spaces")
	check(c.ShutdownGrace >= 0, "shutdown_grace: must not be negative")
	check(c.MaxTimeout >= execution.MinTimeout && c.MaxTimeout <= 30*24*time.Hour, "max_timeout: must be between 1s and 720h")
	check(c.MCPIdle > 0, "mcp_idle: must be more than 0")
	check(c.MaxTimeout%time.Second == 0, "max_timeout: must be whole seconds")
	check(c.MaxConcurrent >= 0, "max_concurrent: must not be negative")
	check(c.MaxQueue >= 0, "max_queue: must not be negative")
	check(c.MaxOutput > 0 && c.MaxOutput <= 1<<30, "max_output: must be between 1 byte and 1GiB")
	check(c.TurnIdle >= time.Second && c.TurnIdle <= 24*time.Hour, "turn_idle: must be between 1s and 24h")
	check(c.LogSize >= 16<<20, "log_size: must be at least 16MiB")
	check(c.LogPerRun >= 1<<20 && c.LogPerRun <= c.LogSize, "log_per_run: must be at least 1MiB and at most log_size")
	check(c.LogAge >= time.Minute, "log_age: must be at least 1m")
	check(c.KeepFor >= time.Hour, "keep_executions: must be at least 1h")
	check(c.KeepResponses >= time.Minute, "keep_responses: must be at least 1m")
	check(c.AuditRoom == 0 || c.AuditRoom >= time.Second, "audit_room: must be 0, for any number, or at least 1s")
	check(c.ModelRetryFor >= 0 && c.ModelRetryFor <= time.Hour, "model_retry_for: must be between 0 and 1h")
	check(c.MaxResponses >= 0, "max_responses: must not be negative")
	check(c.MaxAgents >= 0, "max_agents: must not be negative")
	check(c.ConfirmationTime == 0 || c.ConfirmationTime >= time.Second, "confirmation_time: must be 0, for ever, or at least 1s")
	check(c.MaxSkills >= 0, "max_skills: must not be negative")
	check(c.MaxVaults >= 0, "max_vaults: must not be negative")
	check(c.MaxFiles >= 0, "max_files: must not be negative")
	check(c.StreamsPerToken >= 0 && c.StreamsPerKey >= 0 && c.StreamsPerTenant >= 0, "streams_per_token, streams_per_key, streams_per_tenant: must not be negative")
	check(c.MaxSessions >= 0, "max_sessions: must not be negative")
	check(c.MaxAgentVersions >= 0, "max_agent_versions: must not be negative")
	check(c.KeepThreads == 0 || c.KeepThreads >= time.Hour, "keep_threads: must be 0, for ever, or at least 1h")
	for _, pattern := range c.ImagePullAllow {
		err := image.CheckPull(pattern)
		check(err == nil, "image_pull_allow: %v", err)
	}
	check(c.ImagePullSize > 0, "image_pull_size: must be more than 0")
	check(c.ImagePullTimeout > 0, "image_pull_timeout: must be more than 0")
	check(c.KeepSnapshots == 0 || c.KeepSnapshots >= time.Hour, "keep_snapshots: must be 0, for ever, or at least 1h")
	check(c.KeepUsage >= 62*24*time.Hour, "keep_usage: must be at least 1488h, this month and the one before")
	check(c.MinFreeDisk >= 0, "min_free_disk: must not be negative")
	check(c.PriceCPU >= 0 && c.PriceGiB >= 0 && c.PriceOut >= 0 && c.PriceCall >= 0 && c.PriceSearch >= 0 && c.PriceFetch >= 0,
		"price_cpu_minute, price_gib_minute, price_gib_out, price_call, price_search and price_fetch: must not be negative")
	check(usablePrice(c.PriceWindow), "price_sandbox_window: must be between 0 and %d US dollars", int64(maxPrice))
	for _, tool := range slices.Sorted(maps.Keys(c.PriceTools)) {
		_, err := ParseToolPrice(c.PriceTools[tool])
		check(err == nil, "price_tools: %s: %v", tool, err)
		check(slices.Contains(pricedTools, tool), "price_tools: %q is no tool; there are %s", tool, strings.Join(pricedTools, ", "))
	}
	check(c.Database == "" || strings.HasPrefix(c.Database, "postgres://") || strings.HasPrefix(c.Database, "postgresql://"),
		"database: must be a postgres:// URL, or empty for SQLite")
	check(c.DatabaseConnections >= 2 && c.DatabaseConnections <= 1000, "database_connections: must be between 2 and 1000")
	c.checkNode(check)
	c.checkRole(check)
	check(c.NATSReplicas >= 0 && c.NATSReplicas <= 5, "nats_replicas: must be between 1 and 5, or 0 to leave streams as they are")
	check(c.NATSReplicas <= 1 || !c.Alone(), "nats_replicas: set nats too; the embedded NATS server keeps one copy")
	if c.SecretKey != "" {
		key, err := hex.DecodeString(c.SecretKey)
		check(err == nil && len(key) == 32, "secret_key: must be 64 hexadecimal digits, such as 'openssl rand -hex 32' prints")
	}
	check(c.PackageTime >= time.Second && c.PackageTime <= 24*time.Hour, "package_time: must be between 1s and 24h")
	check(c.PackageSize >= 16<<20 && c.PackageSize <= 1<<40, "package_size: must be between 16MiB and 1TiB")
	check(c.PackageImagesPerTenant >= 0, "package_images_per_tenant: must not be negative")
	check(c.PackageImages >= 0, "package_images: must not be negative")
	check(c.Image != "", "image: must not be empty")
	if c.ImageSource != "" {
		err := image.CheckSource(c.ImageSource)
		check(err == nil, "image_source: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.ImageVariantSources)) {
		check(requirement.IsVariant(name), "image_variant_sources: %q is not a variant of the default image; it has %s", name, strings.Join(requirement.Variants(), ", "))
		err := image.CheckSource(c.ImageVariantSources[name])
		check(err == nil, "image_variant_sources: %s: %v", name, err)
	}
	check(c.ImageVariantTime >= time.Second && c.ImageVariantTime <= 24*time.Hour, "image_variant_time: must be between 1s and 24h")
	if c.ImageMirror != "" {
		u, err := url.Parse(c.ImageMirror)
		check(err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "", "image_mirror: must be an http or https URL")
	}
	if err := c.Limits().Validate(); err != nil {
		bad = append(bad, fmt.Errorf("limits of the environment: %w", err))
	}
	if err := execution.CheckEnv(c.EnvVars); err != nil {
		bad = append(bad, err)
	}
	return errors.Join(bad...)
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// usableKey reports whether a key can be sent in a header as it is.
func usableKey(key string) bool {
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return len(key) <= 256
}

// maxPrice is the most that a call of a tool or a window of a sandbox costs, in US dollars.
const maxPrice = 1_000_000

func usablePrice(dollars float64) bool { return dollars >= 0 && dollars <= maxPrice }

// pricedTools are the names of usage.tool_calls_details.
var pricedTools = []string{"sandbox", "code_interpreter", "web_search", "people_search", "fetch_url", "mcp"}

// ParseToolPrice reads a price of PriceTools, in US dollars.
func ParseToolPrice(text string) (float64, error) {
	dollars, err := strconv.ParseFloat(text, 64)
	if err != nil || !usablePrice(dollars) {
		return 0, fmt.Errorf("%q must be a number of US dollars between 0 and %d", text, int64(maxPrice))
	}
	return dollars, nil
}
