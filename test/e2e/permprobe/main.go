// Command permprobe tries from a compiled binary what permissions forbid, and
// says what came of it. It is sent as text, so it does without package fmt.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

func main() {
	switch what, args := os.Args[1], os.Args[2:]; what {
	case "write":
		say(os.WriteFile(args[0], []byte("x"), 0o600))
	case "read":
		_, err := os.ReadFile(args[0])
		say(err)
	case "list":
		_, err := os.ReadDir(args[0])
		say(err)
	case "exec":
		say(syscall.Exec(args[0], args[1:], os.Environ()))
	case "start":
		p, err := start(args...)
		if err == nil {
			_, err = p.Wait()
		}
		say(err)
	case "many":
		many()
	}
}

func start(args ...string) (*os.Process, error) {
	return os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
}

func say(err error) {
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return
	}
	os.Stdout.WriteString("done\n")
}

// many starts threads, and then processes until it may not.
func many() {
	over := make(chan struct{})
	var threads, begun sync.WaitGroup
	for range 20 {
		begun.Add(1)
		threads.Go(func() {
			runtime.LockOSThread() // a thread of its own
			begun.Done()
			<-over
		})
	}
	begun.Wait()
	for n := 0; ; n++ {
		if _, err := start("/bin/sleep", "5"); err != nil {
			os.Stdout.WriteString(strconv.Itoa(n) + " ")
			say(err)
			break
		}
	}
	close(over)
	threads.Wait()
}
