package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// networkFlags change what programs may connect to.
type networkFlags struct{ allow, deny []string }

func (f *networkFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.allow, "allow", nil, "host that may be connected to, such as api.example.com or *.example.com, or a range of addresses; may be repeated")
	flags.StringSliceVar(&f.deny, "deny", nil, "host that is allowed now and shall not be; may be repeated")
}

// over is the change that the flags make of a policy, nil if they say nothing.
func (f *networkFlags) over(now sdk.NetworkPermissions) (*sdk.NetworkChange, error) {
	if len(f.allow) == 0 && len(f.deny) == 0 {
		return nil, nil
	}
	if now.Unrestricted {
		return nil, wrong("the network is unrestricted: every host is allowed, and no single one can be denied")
	}
	hosts, ranges := slices.Clone(now.AllowedHosts), slices.Clone(now.AllowedCidrs)
	of := func(name string) *[]string {
		if strings.Contains(name, "/") {
			return &ranges
		}
		return &hosts
	}
	for _, name := range f.allow {
		if list := of(name); !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, name := range f.deny {
		list := of(name)
		if !slices.Contains(*list, name) {
			return nil, wrong("--deny %s: it is not among what is allowed", name)
		}
		*list = slices.DeleteFunc(*list, func(have string) bool { return have == name })
	}
	enabled := len(hosts)+len(ranges) > 0
	return &sdk.NetworkChange{Enabled: &enabled, AllowedHosts: &hosts, AllowedCidrs: &ranges}, nil
}
