package bus

import "github.com/atoll-run/atoll/internal/core/execution"

func appendInput(e *encoder, in *execution.Input) {
	e.strs(in.Args)
	e.bytes(in.Stdin)
	e.uint(uint64(len(in.Files)))
	for name, data := range in.Files {
		e.str(name)
		e.bytes(data)
	}
	e.strs(in.Outputs)
}

func readInput(d *decoder) (in execution.Input) {
	in.Args, in.Stdin = d.strs(), d.bytes()
	if n := d.count(2); n > 0 {
		in.Files = make(map[string][]byte, n)
		for range n {
			name := d.str()
			in.Files[name] = d.bytes()
		}
	}
	in.Outputs = d.strs()
	return in
}

func appendFiles(e *encoder, f *execution.OutputFiles) {
	e.bool(f.Truncated)
	e.uint(uint64(len(f.Files)))
	for _, f := range f.Files {
		e.str(f.Name)
		e.int(f.Bytes)
	}
}

func readFiles(d *decoder) (f execution.OutputFiles) {
	f.Truncated = d.bool()
	for range d.count(2) {
		f.Files = append(f.Files, execution.OutputFile{Name: d.str(), Bytes: d.int()})
	}
	return f
}
