package anthropic

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/edge/httpapi/environmentwire"
)

// Types of environments, and of their networks.
const (
	cloud        = "cloud"
	unrestricted = "unrestricted"
	limited      = "limited"
)

// EnvironmentFields is the body that makes or changes an environment.
type EnvironmentFields struct {
	Name   *string        `json:"name,omitzero"`
	Config jsontext.Value `json:"config,omitzero"` // CloudFields

	Description jsontext.Value `json:"description,omitzero"`
	Metadata    jsontext.Value `json:"metadata,omitzero"`
	Scope       jsontext.Value `json:"scope,omitzero"`
}

// CloudFields says what programs of an environment get and may do.
type CloudFields struct {
	Type       *string           `json:"type" required:"true"`
	Networking *NetworkingFields `json:"networking,omitzero"`
	Packages   *PackageFields    `json:"packages,omitzero"`
}

// NetworkingFields says what programs may connect to.
type NetworkingFields struct {
	Type                 *string   `json:"type" required:"true"`
	AllowedHosts         *[]string `json:"allowed_hosts,omitzero"`
	AllowMCPServers      *bool     `json:"allow_mcp_servers,omitzero"`
	AllowPackageManagers *bool     `json:"allow_package_managers,omitzero"`
}

// PackageFields are packages that are there when a sandbox begins.
type PackageFields struct {
	Type  *string   `json:"type,omitzero"`
	Apt   *[]string `json:"apt,omitzero"`
	Cargo []string  `json:"cargo,omitzero"`
	Gem   []string  `json:"gem,omitzero"`
	Go    []string  `json:"go,omitzero"`
	NPM   *[]string `json:"npm,omitzero"`
	Pip   *[]string `json:"pip,omitzero"`
}

// Environment is what sandboxes are made from.
type Environment struct {
	ID          string            `json:"id"`
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	Config      Cloud             `json:"config"`
	Metadata    map[string]string `json:"metadata"`
	Scope       string            `json:"scope"`
	CreatedAt   time.Time         `json:"created_at"`
	UpdatedAt   time.Time         `json:"updated_at"`
	ArchivedAt  *time.Time        `json:"archived_at"`
	// Warnings are ours: what the environment has and the fields above cannot say.
	Warnings []Warning `json:"warnings"`
	// PackageBuild is ours, too: how far packages are installed.
	PackageBuild *environmentwire.PackageBuild `json:"package_build,omitzero"`
}

// Cloud is what programs of an environment get and may do.
type Cloud struct {
	Type       string     `json:"type"`
	Networking Networking `json:"networking"`
	Packages   Packages   `json:"packages"`
}

// Networking is what programs may connect to.
type Networking struct {
	Type    string
	*Limits // nil for everything
}

// Limits are those of a limited network.
type Limits struct {
	AllowedHosts         []string `json:"allowed_hosts"`
	AllowMCPServers      bool     `json:"allow_mcp_servers"`
	AllowPackageManagers bool     `json:"allow_package_managers"`
}

// Packages are packages that are there when a sandbox begins.
type Packages struct {
	Type  string   `json:"type"`
	Apt   []string `json:"apt"`
	Cargo []string `json:"cargo"`
	Gem   []string `json:"gem"`
	Go    []string `json:"go"`
	NPM   []string `json:"npm"`
	Pip   []string `json:"pip"`
}
