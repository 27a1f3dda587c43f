package requirement

import "github.com/atoll-run/atoll/internal/core/fault"

// ErrNotInstalled rejects an environment with packages on a server that installs none.
var ErrNotInstalled = fault.New(fault.Conflict, "this environment has packages, but this server does not install packages (package_images): remove them, or ask the operator to allow them")
