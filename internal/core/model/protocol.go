package model

import (
	"net/http"
	"slices"
)

// Provider names a wire protocol of providers, such as "openai".
type Provider string

// Protocol describes a wire protocol. Each package of internal/agent/model that implements one
// declares it.
type Protocol struct {
	Name Provider
	// DefaultURL is the base URL of the provider's own service; "" for a protocol of many services.
	DefaultURL string
	// MaxTemperature is the highest temperature that the provider accepts; 0 for no limit.
	MaxTemperature float64
	// CustomTools says that the protocol has tools whose input is free text.
	CustomTools bool
	// Open returns a Model that asks the model of a record through rt.
	Open func(r Record, rt http.RoundTripper) Model
}

var protocols []Protocol

// Register adds wire protocols. Lists of providers keep their order. Register is for init
// functions: it must not run while other functions of the package do.
func Register(all ...Protocol) { protocols = append(protocols, all...) }

// Providers returns the names of all registered protocols.
func Providers() []Provider {
	out := make([]Provider, len(protocols))
	for i := range protocols {
		out[i] = protocols[i].Name
	}
	return out
}

// Protocol returns the protocol with the name p; nil for an unknown name.
func (p Provider) Protocol() *Protocol {
	i := slices.IndexFunc(protocols, func(known Protocol) bool { return known.Name == p })
	if i < 0 {
		return nil
	}
	return &protocols[i]
}

// DefaultURL returns Protocol.DefaultURL; "" for an unknown provider.
func (p Provider) DefaultURL() string {
	if known := p.Protocol(); known != nil {
		return known.DefaultURL
	}
	return ""
}

// Choices returns the names of all registered protocols.
func (Provider) Choices() []string {
	out := make([]string, len(protocols))
	for i, p := range Providers() {
		out[i] = string(p)
	}
	return out
}
