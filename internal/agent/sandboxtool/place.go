package sandboxtool

import (
	"maps"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/execution"
)

// place gives a program the files of the run's input, as far as it leaves them room.
func place(c *loop.Call, req *execution.Request) {
	left := execution.MaxInputBytes - len(req.Input.Stdin)
	files := maps.Clone(req.Input.Files)
	for name, data := range c.Files {
		if name == execution.ProgramFile(req.Language) || len(data) > left {
			continue
		}
		if files == nil {
			files = map[string][]byte{}
		}
		files[name] = data
		left -= len(data)
	}
	req.Input.Files = files
}
