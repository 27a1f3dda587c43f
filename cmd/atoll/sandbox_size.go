package main

import (
	"errors"

	"github.com/spf13/pflag"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// sandboxSize holds the flags that limit a new sandbox's CPU, memory and disk.
type sandboxSize struct {
	flags        *pflag.FlagSet
	cpu          float64
	memory, disk string
}

func (s *sandboxSize) addFlags(flags *pflag.FlagSet) {
	s.flags = flags
	flags.Float64Var(&s.cpu, "cpu", 0, "CPU cores, at most the limit of the key's environment (default: that limit)")
	flags.StringVar(&s.memory, "memory", "", "such as 256MiB, at most the limit of the key's environment (default: that limit)")
	flags.StringVar(&s.disk, "disk", "", "such as 1GiB, for /home/user, /tmp and /var/tmp together (default: the limit of the plan)")
}

// apply adds the given flags to a request; the server chooses defaults for the others.
func (s *sandboxSize) apply(in *sdk.NewSandbox) error {
	var limits sdk.SizeLimits
	if s.flags.Changed("cpu") {
		limits.CPU = &s.cpu
	}
	if err := errors.Join(s.bytes("memory", s.memory, &limits.Memory), s.bytes("disk", s.disk, &in.DiskSize)); err != nil {
		return err
	}
	if limits.CPU != nil || limits.Memory != nil {
		in.Limits = &limits
	}
	return nil
}

func (s *sandboxSize) bytes(flag, text string, field **int64) error {
	if !s.flags.Changed(flag) {
		return nil
	}
	n, err := size(flag, text)
	*field = &n
	return err
}
