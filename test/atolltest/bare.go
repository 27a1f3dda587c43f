package atolltest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// bareScript mounts the image under a writable overlay in a mount namespace of
// its own and runs a command in it as the sandbox's user would. The shell stays
// as process 1 of a process namespace, so that the program is an ordinary one;
// what the shell has to say of the program's end goes to its own stderr.
// Arguments: image, scratch folder, program file, and the command.
const bareScript = `set -e
image=$1 dir=$2 file=$3; shift 3
mount -t tmpfs tmpfs "$dir"
mkdir "$dir/image" "$dir/upper" "$dir/work" "$dir/root"
mount -t erofs -o ro,loop "$image" "$dir/image"
mount -t overlay -o "lowerdir=$dir/image,upperdir=$dir/upper,workdir=$dir/work" overlay "$dir/root"
mount -t proc proc "$dir/root/proc"
mount -t tmpfs -o mode=755 tmpfs "$dir/root/dev"
for d in null zero full random urandom; do touch "$dir/root/dev/$d"; mount --bind "/dev/$d" "$dir/root/dev/$d"; done
ln -s /proc/self/fd "$dir/root/dev/fd"
mkdir -m 1777 "$dir/root/dev/shm"; mount -t tmpfs -o mode=1777 tmpfs "$dir/root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$dir/root/tmp"
mkdir -p "$dir/root/home/user"
cp "$file" "$dir/root/home/user/"
chown -R 1000:1000 "$dir/root/home/user"
set +e
(exec chroot --userspec=1000:1000 --groups=1000 "$dir/root" /usr/bin/env -i --default-signal -C /home/user "$@" <&5 >&3 2>&4 3>&- 4>&- 5<&-)
exit $?
`

// Script is how a language's program is called, as documented.
var Script = map[string]struct{ Interpreter, Path, File string }{
	Python: {"python3", "/usr/bin/python3", "main.py"},
	Node:   {"node", "/usr/bin/node", "main.js"},
	Bash:   {"bash", "/usr/bin/bash", "main.sh"},
}

// Environ is the environment of every program in the tests' image.
var Environ = []string{
	"HOME=/home/user", "LANG=C.UTF-8", "LOGNAME=user", "MPLCONFIGDIR=/var/cache/matplotlib",
	"PATH=/home/user/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"SHELL=/bin/bash", "USER=user",
}

// Bare runs a program with the image's own interpreter, without a sandbox, and
// returns what an execution of it should answer. It needs root.
func Bare(t testing.TB, p Program) *Result {
	t.Helper()
	img, err := ImageDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := Script[p.Language]
	file := filepath.Join(dir, script.File)
	scratch := filepath.Join(dir, "scratch")
	if err := errors.Join(os.WriteFile(file, []byte(p.Code), 0o600), os.Mkdir(scratch, 0o700)); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts",
		"sh", "-c", bareScript, "sh", filepath.Join(img, "rootfs.erofs"), scratch, file,
		"--argv0=" + script.Interpreter, // without its path, as in the sandbox
	}, Environ...)
	for k, v := range p.Env {
		args = append(args, k+"="+v)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append(args, script.Path, script.File)...)
	var r Result
	var complaints bytes.Buffer
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &complaints, &complaints
	wait, err := extra(cmd, &stdout, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Run()
	wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("run bare: %v", err)
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Exited() {
		r.ExitCode = status.ExitStatus()
	} else {
		t.Fatalf("run bare: %v: %s", cmd.ProcessState, &complaints)
	}
	if stdout.Len()+stderr.Len() == 0 && r.ExitCode != 0 && bytes.Contains(complaints.Bytes(), []byte("mount")) {
		t.Fatalf("run bare: %s", &complaints)
	}
	r.Status, r.Success = 200, r.ExitCode == 0
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	return &r
}

// extra gives a command the program's output as descriptors 3 and 4, its input
// as 5. What it returns waits until both outputs were read.
func extra(cmd *exec.Cmd, stdout, stderr *bytes.Buffer) (wait func(), err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 2)
	var writers []*os.File
	for _, buf := range []*bytes.Buffer{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		writers = append(writers, w)
		go func() {
			_, err := buf.ReadFrom(r)
			done <- errors.Join(err, r.Close())
		}()
	}
	cmd.ExtraFiles = append(writers, null)
	return func() {
		for _, f := range cmd.ExtraFiles {
			_ = f.Close() // ours; the program has its own
		}
		<-done
		<-done
	}, nil
}
