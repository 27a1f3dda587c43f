package main

import (
	"errors"

	"github.com/spf13/pflag"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// sandboxSize are the flags that say how much a new sandbox may use.
type sandboxSize struct {
	flags        *pflag.FlagSet
	cpu          float64
	memory, disk string
}

func (s *sandboxSize) addFlags(flags *pflag.FlagSet) {
	s.flags = flags
	flags.Float64Var(&s.cpu, "cpu", 0, "cores, at most those of the key's environment (those)")
	flags.StringVar(&s.memory, "memory", "", "such as 256MiB, at most that of the key's environment (that)")
	flags.StringVar(&s.disk, "disk", "", "such as 1GiB, for /home/user, /tmp and /var/tmp together (as much as the plan allows)")
}

// apply puts into a request the flags that were given.
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
