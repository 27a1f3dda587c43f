package guestinit

// failure is an error made without package fmt, which process 1 does without.
type failure string

func (f failure) Error() string { return string(f) }

const errNotInit = failure("atoll-guest is process 1 of a sandbox and of nothing else: it ends every process it can see")

// step names what failed; it passes nil on.
func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return failure(name + ": " + err.Error())
}
