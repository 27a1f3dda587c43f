package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Container is a program in a container of gVisor's own runsc, as one has it who uses
// runsc alone, with its defaults and the root file system of RunscDo. It answers each
// byte that it is written with the same byte.
//
// runsc stays with it instead of detaching: so it ends with runsc, and runsc with us.
type Container struct {
	of      *Containers
	id      string
	cmd     *exec.Cmd
	stderr  bytes.Buffer // of runsc, and of the program; read when both have ended
	in, out *os.File
}

// answerWait is how long a program may take to answer, its start included.
const answerWait = 30 * time.Second

// ask writes a byte.
func (k *Container) ask() error {
	_, err := k.in.Write([]byte{'?'})
	return err
}

// hear waits for the byte to come back. A container that has none to give is killed.
func (k *Container) hear() error {
	if err := k.out.SetReadDeadline(time.Now().Add(answerWait)); err != nil {
		return err
	}
	if _, err := io.ReadFull(k.out, make([]byte, 1)); err != nil {
		_ = k.cmd.Process.Kill() // one that has ended is what is wanted
		_ = k.cmd.Wait()         // its answer is that kill, or what stderr says
		return fmt.Errorf("the program does not answer: %w: %s", err, tail(strings.TrimSpace(k.stderr.String())))
	}
	return nil
}

// Pause stops the program, with something to answer when it goes on.
func (k *Container) Pause(ctx context.Context) error {
	if err := k.of.run(ctx, "pause", k.id); err != nil {
		return err
	}
	return k.ask()
}

// Resume has it go on, and returns how long it took until it had answered.
func (k *Container) Resume(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	if err := k.of.run(ctx, "resume", k.id); err != nil {
		return 0, err
	}
	err := k.hear()
	return time.Since(begun), err
}

// Checkpoint writes the program's state to disk, in the place of the one before, and
// returns how long that took. The program goes on.
func (k *Container) Checkpoint(ctx context.Context) (time.Duration, error) {
	if err := os.RemoveAll(k.of.saved()); err != nil {
		return 0, err
	}
	if err := os.Mkdir(k.of.saved(), 0o700); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := k.of.run(ctx, "checkpoint", "--leave-running", "--image-path="+k.of.saved(), k.id)
	return time.Since(begun), err
}

// Delete ends the container.
func (k *Container) Delete() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	err := k.of.run(ctx, "delete", "--force", k.id)
	_ = k.cmd.Process.Kill() // likewise: it waits for the container's end
	_ = k.cmd.Wait()
	return errors.Join(err, k.in.Close(), k.out.Close())
}
