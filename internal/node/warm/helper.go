package warm

import (
	"encoding/binary"
	"path"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/process"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/initclient"
	"github.com/atoll-run/atoll/internal/node/image"
)

// helperLoader runs the program that comes first on stdin, behind its length. It has imported all
// that it needs before it enters the home directory.
const helperLoader = `import os,sys
n=int.from_bytes(sys.stdin.buffer.read(4),"big")
code=compile(sys.stdin.buffer.read(n),"<helper>","exec")
os.chdir(` + "\"" + runtime.Home + "\"" + `)
exec(code,{"__name__":"__main__"})
`

// helper is the command that runs a program of the platform's. No part of it comes from the home
// directory: the interpreter's path is the image's, the program comes by stdin instead of as a
// file there, -I leaves out the working directory, the user's packages and variables of Python,
// and the other variables are those of process.Isolated.
func (s *Sandbox) helper(in image.Interpreter, env map[string]string, p *execution.Program) initclient.RunSpec {
	c := s.command(in, env)
	c.Argv = []string{path.Base(in.Path), "-I", "-X", "utf8", "-c", helperLoader}
	c.Env, c.Dir = process.Isolated.Isolate(c.Env), "/"
	stdin := binary.BigEndian.AppendUint32(nil, uint32(len(p.Code)))
	return initclient.RunSpec{Command: c, Stdin: append(append(stdin, p.Code...), p.Input.Stdin...), Port: p.Port, Serve: p.Serve}
}
