package openaiwire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/core/container"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/tenant"
	"github.com/atoll-run/atoll/internal/edge/httpapi"
)

// ContainerOptions are what a new container has, here and at /v1/containers.
type ContainerOptions struct {
	FileIDs       []string         `json:"file_ids,omitzero" doc:"Refused: there are no files to copy by id. Upload them to the container."`
	MemoryLimit   *string          `json:"memory_limit,omitzero" enum:"1g,4g,16g,64g" doc:"At most what sandboxes of the key's environment have, which is what it has if omitted."`
	NetworkPolicy *ContainerAccess `json:"network_policy,omitzero" doc:"Part of the environment's network that the container may use."`
	Skills        []jsontext.Value `json:"skills,omitzero" doc:"Refused: there are no skills."`
}

// ContainerAccess narrows what the environment's network policy allows.
type ContainerAccess struct {
	Type           *string          `json:"type" required:"true" enum:"disabled,allowlist"`
	AllowedDomains []string         `json:"allowed_domains,omitzero" doc:"With allowlist: names of hosts, or *.example.com."`
	DomainSecrets  []jsontext.Value `json:"domain_secrets,omitzero" doc:"Refused: an environment's bound secrets do this."`
}

// Domain checks options at a path, and gives the memory and network of a sandbox.
func (o *ContainerOptions) Domain(path string, env *tenant.Environment) (memory int64, network *runtime.NetworkPolicy, err error) {
	switch {
	case len(o.FileIDs) > 0:
		return 0, nil, httpapi.Invalid("%sfile_ids is not supported: upload files to the container instead", path)
	case len(o.Skills) > 0:
		return 0, nil, httpapi.Invalid("%sskills is not supported", path)
	}
	if o.MemoryLimit != nil {
		if memory, err = container.Memory(path, *o.MemoryLimit, env); err != nil {
			return 0, nil, err
		}
	}
	if o.NetworkPolicy != nil {
		network, err = o.NetworkPolicy.policy(path+"network_policy", env.Permissions.Network)
	}
	return memory, network, err
}

func (a *ContainerAccess) policy(path string, env runtime.NetworkPolicy) (*runtime.NetworkPolicy, error) {
	if len(a.DomainSecrets) > 0 {
		return nil, httpapi.Invalid("%s.domain_secrets is not supported: bind secrets to hosts in the environment", path)
	}
	return container.Network(path, env, *a.Type == "allowlist", a.AllowedDomains)
}
