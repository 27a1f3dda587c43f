package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/core/tenant"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// networkFlags change what programs may connect to.
type networkFlags struct{ allow, deny []string }

func (f *networkFlags) addFlags(flags *pflag.FlagSet) {
	names := make([]string, len(tenant.Presets))
	for i, p := range tenant.Presets {
		names[i] = p.Name
	}
	flags.StringSliceVar(&f.allow, "allow", nil, "allow connections to a host (api.example.com, *.example.com), a range of addresses, or a package registry: "+choices(names)+"; may be repeated")
	flags.StringSliceVar(&f.deny, "deny", nil, "remove a host that --allow added; may be repeated")
}

func (f *networkFlags) given() bool { return len(f.allow)+len(f.deny) > 0 }

// over is the change that the flags make of a policy, nil if they say nothing.
func (f *networkFlags) over(now sdk.NetworkPermissions) (*sdk.NetworkChange, error) {
	if !f.given() {
		return nil, nil
	}
	if now.Unrestricted {
		return nil, wrong("the network is unrestricted, so --deny cannot exclude single hosts")
	}
	hosts, ranges := slices.Clone(now.AllowedHosts), slices.Clone(now.AllowedCidrs)
	of := func(name string) *[]string {
		if strings.Contains(name, "/") {
			return &ranges
		}
		return &hosts
	}
	for _, name := range withoutPresets(f.allow) {
		if list := of(name); !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, name := range withoutPresets(f.deny) {
		list := of(name)
		if !slices.Contains(*list, name) {
			return nil, wrong("--deny %s: not in the list of allowed hosts", name)
		}
		*list = slices.DeleteFunc(*list, func(have string) bool { return have == name })
	}
	enabled := len(hosts)+len(ranges) > 0
	change := &sdk.NetworkChange{Enabled: &enabled}
	if enabled { // or there would be something to allow beside no network
		change.AllowedHosts, change.AllowedCidrs = &hosts, &ranges
	}
	return change, nil
}

// withoutPresets puts the hosts of presets in the place of their names.
func withoutPresets(names []string) []string {
	var out []string
	for _, name := range names {
		if hosts := tenant.PresetHosts(name); hosts != nil {
			out = append(out, hosts...)
		} else {
			out = append(out, name)
		}
	}
	return out
}
