package atolltest

import (
	"bytes"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// programTime is what a program that a test runs may take, on a loaded machine and with what it
// downloads. The longest one is the fuzzer of the API.
const programTime = 8 * time.Minute

// Output runs a program to its end and returns what it said. One that hangs is killed after
// 8 minutes, with all that it started; the error goes with what it had said.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second // for what it left behind that holds its output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	late := time.AfterFunc(programTime, func() {
		close(over)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	err := cmd.Wait()
	if !late.Stop() {
		<-over
		err = fmt.Errorf("it was killed after %v: %w", programTime, err)
	}
	return out.Bytes(), err
}
