package gvisor

import (
	"context"
	"os"
)

// WriteUpper writes what the sandbox has above its image to a file, as a tar stream: files,
// folders and links as programs have made them, a device 0:0 for what they removed.
func (i *Instance) WriteUpper(ctx context.Context, f *os.File) error {
	return i.runtime.control(ctx, i.id, controlUpper, map[string]any{"ContainerID": string(i.born)}, f)
}
