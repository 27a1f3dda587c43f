package main

import (
	"encoding/json"
	"math"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Annotations in the sandbox's specification that say what it may use. Control
// groups would say it too, but not every user has some, and none holds a number
// of files.
const (
	memoryAnnotation = "run.atoll.memory" // bytes
	cpusAnnotation   = "run.atoll.cpus"   // cores
	inodesAnnotation = "run.atoll.inodes" // files of the overlay over the root
)

// limits are what the sandbox may use; zero where nothing is said.
type limits struct {
	memory, inodes int64
	cpus           float64
}

// tell adds to the boot command what the sandbox is allowed, so that programs
// see the memory and processors they may use: Node sizes its heap by it. Limits
// that are not known leave the machine's figures in place.
func (l limits) tell(args []string) []string {
	out := make([]string, 0, len(args)+2)
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "--total-memory" || a == "--total-host-memory") && l.memory > 0 && i+1 < len(args):
			i++
			out = append(out, a, strconv.FormatInt(l.memory, 10))
		case a == "boot":
			out = append(out, a)
			// Below two processors some programs leave out locks that others
			// of theirs rely on; gVisor itself keeps to this minimum.
			if n := max(2, int(math.Ceil(l.cpus))); l.cpus > 0 && n < runtime.NumCPU() {
				out = append(out, "--cpu-num", strconv.Itoa(n))
			}
		default:
			out = append(out, a)
		}
	}
	return out
}

// readLimits reads the specification that the boot command was given a
// descriptor of, where and as it is: opening it by name is not for the user that
// this process runs as, and closing it would take it from gVisor.
func readLimits(args []string) (l limits) {
	for _, a := range args {
		text, ok := strings.CutPrefix(a, "--spec-fd=")
		if !ok {
			continue
		}
		fd, err := strconv.Atoi(text)
		if err != nil || fd < 0 {
			return l
		}
		data, err := readAll(fd)
		if err != nil {
			return l
		}
		var spec struct {
			Annotations map[string]string `json:"annotations"`
		}
		if json.Unmarshal(data, &spec) != nil {
			return l
		}
		l.memory, _ = strconv.ParseInt(spec.Annotations[memoryAnnotation], 10, 64)
		l.inodes, _ = strconv.ParseInt(spec.Annotations[inodesAnnotation], 10, 64)
		l.cpus, _ = strconv.ParseFloat(spec.Annotations[cpusAnnotation], 64)
		return l
	}
	return l
}

// readAll reads a file from its beginning, whatever its position.
func readAll(fd int) ([]byte, error) {
	var data []byte
	buf := make([]byte, 16<<10)
	for {
		n, err := syscall.Pread(fd, buf, int64(len(data)))
		if err != nil || n == 0 {
			return data, err
		}
		data = append(data, buf[:n]...)
	}
}
