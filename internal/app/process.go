package app

import (
	"log/slog"
	"path/filepath"
	"time"
)

// process is known to every module.
type process struct {
	cfg Config
	log *slog.Logger
}

// path is a file or folder in the data folder.
func (p *process) path(name string) string { return filepath.Join(p.cfg.Settings.DataDir, name) }

// folder is this process's part of the folder that sandboxes mount from, on disk.
func (p *process) folder() string { return filepath.Join(p.cfg.Platform.Disk, p.cfg.Platform.Name) }

// keepOutputs is the longest that anything is kept which counts for a plan's max_outputs:
// files of responses stay as long as those.
func (p *process) keepOutputs() time.Duration {
	return max(p.cfg.Settings.KeepFor, p.cfg.Settings.KeepResponses)
}
