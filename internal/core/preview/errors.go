package preview

import (
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
)

// ErrNotOpen is returned for a port without a preview.
var ErrNotOpen = fault.New(fault.NotFound, "this port is not open")

// ErrTooMany rejects a preview if the sandbox has MaxPreviews.
var ErrTooMany = fault.Limit("previews", time.Time{}, "a sandbox can have %d open ports; close one that you do not need", MaxPreviews)
