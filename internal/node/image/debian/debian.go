// Package debian makes a root filesystem from Debian's packages: Python with
// its scientific libraries, Node.js and the usual command-line tools.
//
// mmdebstrap does the work and hands over a tar stream, so no folder of
// root-owned files is left to clean and no privilege is needed where user
// namespaces are. Signatures are always checked.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/rootless"
)

// Suite is the release the packages come from.
const Suite = "testing"

// packages are those named in the documentation; their dependencies come with
// them, what they merely recommend does not.
var packages = []string{
	"bash", "ca-certificates", "curl", "file", "git", "jq", "less", "procps", "tzdata", "unzip", "vim-tiny",
	"g++", "gcc", "libc6-dev", "make",
	"fonts-noto-cjk", "fonts-noto-color-emoji",
	"nodejs", "npm",
	"python3", "python3-pip", "python3-venv", "python-is-python3",
	"python3-jinja2", "python3-matplotlib", "python3-numpy", "python3-pandas", "python3-pypdf", "python3-requests",
}

// extras are packages that few programs need, by the names that the command line has for
// them.
var extras = map[string][]string{
	requirement.Browser: {"chromium"},
	requirement.Office:  {"libreoffice-calc-nogui", "libreoffice-impress-nogui", "libreoffice-writer-nogui"},
}

// Extras lists what an image can have besides its usual packages.
func Extras() []string { return slices.Sorted(maps.Keys(extras)) }

// CheckExtras returns names without repetition and in order, or an Invalid fault.
func CheckExtras(names []string) ([]string, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if extras[name] == nil {
			return nil, fault.New(fault.Invalid, "unknown extra %q; an image can be built with %s", name, strings.Join(Extras(), ", "))
		}
	}
	return names, nil
}

// excluded are paths that no package may bring. Licences stay.
var excluded = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*",
	"path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/lintian/*",
	// One weight of one face has every character, in 19 of 90 MB.
	"path-exclude=/usr/share/fonts/opentype/noto/*CJK*", "path-include=/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
}

// fontCache is where the image has matplotlib's list of fonts, which takes seconds to
// make: see files/atoll_fonts.py. No variable names it, so that the user's own
// configuration of matplotlib counts.
const fontCache = "/var/cache/matplotlib"

// customize runs in the new root after its packages are configured. A program that sets
// its locale opens 12 files of it, unless they are in the archive of locales too.
var customize = `chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 MPLCONFIGDIR=` + fontCache +
	` python3 -c '` + strings.ReplaceAll(fontsModule, "'", `'\''`) + `' && rm -rf "$1"/root/.cache` +
	` && chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin localedef --quiet --add-to-archive /usr/lib/locale/C.utf8`

// keyring holds the keys that sign Debian's archive.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Options say where packages come from.
type Options struct {
	// Mirror is the archive's address; "" means the one this machine's apt
	// uses if it is Debian's, else mmdebstrap's own.
	Mirror string
	// With names extras.
	With []string
	// Background lowers the priority of the build.
	Background bool
	// Progress hears a line for each step; it may be nil.
	Progress func(line string)
}

// Available reports, as an Unavailable fault.Error that says how to mend it,
// why Bootstrap cannot work on this machine.
func Available() error {
	var missing []string
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		missing = append(missing, "mmdebstrap")
	}
	if _, err := os.Stat(keyring); err != nil {
		missing = append(missing, "debian-archive-keyring")
	}
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("newuidmap"); err != nil {
			missing = append(missing, "uidmap")
		}
	}
	if rootless.Alone() {
		return fault.New(fault.Unavailable, "building the default image takes users to give its files to: grant subordinate ids, as docs/operate/rootless.md says, or build it as root")
	}
	if len(missing) > 0 {
		return fault.New(fault.Unavailable, "building the default image takes packages that are missing: apt-get install %s", strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return subordinate("/etc/subuid", "/etc/subgid")
	}
	return nil
}

// subordinate reports whether this user may map other users' numbers into a
// namespace of its own, as the packages' files need.
func subordinate(files ...string) error {
	names := []string{strconv.Itoa(os.Getuid())}
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username)
	}
	for _, file := range files {
		data, _ := os.ReadFile(file)
		found := false
		for line := range strings.Lines(string(data)) {
			name, _, _ := strings.Cut(line, ":")
			found = found || slices.Contains(names, name)
		}
		if !found {
			return fault.New(fault.Unavailable, "building the default image without root takes a range of numbers in %s: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", file, names[len(names)-1])
		}
	}
	return nil
}

// Bootstrap makes the root filesystem and gives consume its tar stream. It
// takes a minute or two, about 300 MB of downloads and 1.5 GB in $TMPDIR
// (/var/tmp by default). consume may be called again when an attempt ended
// before the first byte.
func Bootstrap(ctx context.Context, opts Options, consume func(io.Reader) error) error {
	if err := Available(); err != nil {
		return err
	}
	mirrors := []string{opts.Mirror}
	if own := hostMirror(); opts.Mirror == "" && own != "" {
		mirrors = []string{own, ""}
	}
	var errs []error
	for _, mirror := range mirrors {
		err := attempt(ctx, mirror, false, opts, consume)
		if f, ok := errors.AsType[*failure](err); ok && f.expired() {
			say(opts.Progress, "the archive's Release file has expired; its signature is checked, its date is not")
			err = attempt(ctx, mirror, true, opts, consume)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		if f, ok := errors.AsType[*failure](err); !ok || f.wrote {
			return err
		}
		say(opts.Progress, "this archive failed"+reason([]error{err}))
		errs = append(errs, err)
	}
	return fault.Wrap(fault.Unavailable, errors.Join(errs...), "the default image could not be built from Debian's packages"+reason(errs))
}

// credentials matches the credentials in the URL of a mirror.
var credentials = regexp.MustCompile(`//[^/@\s]+@`)

// showable returns a line of mmdebstrap without credentials and without this machine's folder of the
// build. Tenants see it.
func showable(line string) string {
	return built.ReplaceAllString(credentials.ReplaceAllString(line, "//"), "")
}

// reason returns the last error that mmdebstrap or apt printed, in words for those who need the
// image; "" for none.
func reason(errs []error) string {
	for _, err := range slices.Backward(errs) {
		f, ok := errors.AsType[*failure](err)
		if !ok {
			continue
		}
		for _, line := range slices.Backward(f.lines) {
			why, ok := strings.CutPrefix(line, "E: ")
			if ok && !slices.ContainsFunc(unspecific, func(p string) bool { return strings.HasPrefix(why, p) }) {
				why = showable(why)
				return ": " + why[:min(len(why), maxReason)]
			}
		}
	}
	return ""
}

const maxReason = 300 // bytes

// unspecific lists the starts of errors that only refer to an earlier error.
var unspecific = []string{"apt-get ", "mmdebstrap failed", "Some index files failed"}

func say(progress func(string), line string) {
	if progress != nil {
		progress(line)
	}
}

// arguments are mmdebstrap's.
func arguments(mirror string, expired bool, with []string) []string {
	include := slices.Clone(packages)
	for _, name := range with {
		include = append(include, extras[name]...)
	}
	mode := "--mode=unshare"
	if os.Geteuid() == 0 {
		mode = "--mode=root"
	}
	args := []string{
		mode, "--variant=minbase", "--format=tar",
		"--aptopt=Acquire::Languages \"none\"",
		"--aptopt=APT::Install-Recommends \"false\"",
		"--keyring=" + keyring,
		"--include=" + strings.Join(include, ","),
		"--customize-hook=" + customize,
	}
	if expired {
		args = append(args, "--aptopt=Acquire::Check-Valid-Until \"false\"")
	}
	for _, e := range excluded {
		args = append(args, "--dpkgopt="+e)
	}
	args = append(args, Suite, "-")
	if mirror != "" {
		args = append(args, mirror)
	}
	return args
}

// stopTime is what mmdebstrap gets to unmount and clean after it is told to
// stop.
const stopTime = 30 * time.Second

// attempt runs mmdebstrap once.
func attempt(ctx context.Context, mirror string, expired bool, opts Options, consume func(io.Reader) error) error {
	cleanup := context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, "mmdebstrap", arguments(mirror, expired, opts.With)...)
	temp, lock, err := tempFolder(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = exec.CommandContext(cleanup, removal[0], append(removal[1:], temp)...).Run() }() // of what mmdebstrap left, if it was stopped
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	defer lock.Close()
	// mmdebstrap waits for its children, so the signal must reach all of them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if ownMounts(ctx) { // what it mounts in the new root goes with it, however it ends
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	last := &tail{progress: opts.Progress}
	cmd.Stderr = last
	pr, pw := io.Pipe()
	cmd.Stdout = pw
	counted := &counter{r: pr}
	consumed := make(chan error, 1)
	go func() {
		err := consume(counted)
		if err != nil {
			cancel(err)
		}
		pr.Close()
		consumed <- err
	}()
	err = runGroup(cleanup, cmd, temp, opts.Background)
	stopped := ctx.Err() != nil // by the caller or by consume
	pw.CloseWithError(err)      // io.EOF when err is nil
	consumeErr := <-consumed
	switch {
	case stopped:
		return context.Cause(ctx)
	case err != nil:
		return &failure{err: err, lines: last.lines, wrote: counted.n > 0}
	}
	return consumeErr
}

// ownMounts reports whether a program can have a mount namespace. Without root mmdebstrap makes one
// itself.
func ownMounts(ctx context.Context) bool {
	if os.Geteuid() != 0 {
		return false
	}
	try := exec.CommandContext(ctx, "sh", "-c", ":")
	try.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return try.Run() == nil
}

const backgroundNice = 10

// removal removes a folder, and nothing that is mounted in it.
var removal = []string{"rm", "-rf", "--one-file-system", "--"}

const tempPrefix = "atoll-build-"

// built is the path of a build's new root.
var built = regexp.MustCompile(`/[^\s'"]*/` + tempPrefix + `\d+(/mmdebstrap\.\w+)?`)

// tempFolder makes the folder in which mmdebstrap makes the new root, and locks it while the build runs.
// Without root that root belongs to other users, who can remove it from here as they can from /var/tmp.
func tempFolder(ctx context.Context) (temp string, lock *os.File, err error) {
	dir := os.Getenv("TMPDIR")
	if dir == "" {
		dir = "/var/tmp" // /tmp is often memory
	}
	removeStale(ctx, dir)
	if temp, err = os.MkdirTemp(dir, tempPrefix); err != nil {
		return "", nil, err
	}
	if err = os.Chmod(temp, 0o777|os.ModeSticky); err == nil {
		lock, err = lockFolder(temp)
	}
	if err != nil {
		return "", nil, errors.Join(err, os.Remove(temp))
	}
	return temp, lock, nil
}

// newTime is how long a folder may take to be locked after it was made.
const newTime = time.Minute

// removeStale removes the folders of builds that ended together with their watchdogs, as when a
// container or the machine stops. Each may have gigabytes.
func removeStale(ctx context.Context, dir string) {
	entries, _ := os.ReadDir(dir) // if it cannot be read, making a folder says so
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) || time.Since(info.ModTime()) < newTime {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if lock, err := lockFolder(path); err == nil {
			_ = exec.CommandContext(ctx, removal[0], append(slices.Clone(removal[1:]), path)...).Run() // the next build tries again
			_ = lock.Close()
		}
	}
}

// lockFolder locks a folder unless another process has.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// watch is a script that waits until its stdin ends, and then stops a process group, kills it after a
// while, and removes a folder.
const watch = `cat
kill -s TERM -- "-$1"
for i in 1 2 3 4 5 6 7 8 9 10; do kill -s 0 -- "-$1" 2>/dev/null || break; sleep 1; done
kill -s KILL -- "-$1" 2>/dev/null
shift
exec "$@"`

// runGroup runs a program that leads a process group. If this process is killed, a
// watchdog stops the group and removes its folder. ctx is the watchdog's.
func runGroup(ctx context.Context, cmd *exec.Cmd, temp string, background bool) (err error) {
	if err := cmd.Start(); err != nil {
		return err
	}
	if background {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, backgroundNice) // what it starts has it, too
	}
	watchdog := exec.CommandContext(ctx, "sh", append([]string{"-c", watch, "sh", strconv.Itoa(cmd.Process.Pid)}, append(slices.Clone(removal), temp)...)...)
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to this process's group must not end it
	alive, err := watchdog.StdinPipe()                         // ends with this process
	if err == nil {
		err = watchdog.Start()
	}
	if err != nil {
		return errors.Join(err, cmd.Cancel(), cmd.Wait())
	}
	defer func() {
		_ = syscall.Kill(-watchdog.Process.Pid, syscall.SIGKILL)
		_ = watchdog.Wait() // it was killed
		_ = alive.Close()
	}()
	return cmd.Wait()
}

// failure is mmdebstrap's.
type failure struct {
	err   error
	lines []string
	wrote bool
}

func (f *failure) Error() string {
	return fmt.Sprintf("mmdebstrap: %v\n%s", f.err, strings.Join(f.lines, "\n"))
}

func (f *failure) Unwrap() error { return f.err }

// expired reports whether apt refused a Release file for its date.
func (f *failure) expired() bool {
	for _, l := range f.lines {
		if strings.Contains(l, "is expired (invalid since") || strings.Contains(l, "is not valid yet") {
			return true
		}
	}
	return false
}

// tail is a program's stderr: it passes steps on and keeps the last lines.
type tail struct {
	progress func(string)
	part     []byte // a line's beginning
	lines    []string
}

const (
	tailLines = 20
	tailWidth = 4096 // bytes kept of one line
)

func (t *tail) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n':
			t.line(string(t.part))
			t.part = t.part[:0]
		case c == '\r': // a progress bar starts over
			t.part = t.part[:0]
		case len(t.part) < tailWidth:
			t.part = append(t.part, c)
		}
	}
	return len(p), nil
}

func (t *tail) line(line string) {
	if line == "" {
		return
	}
	if t.lines = append(t.lines, line); len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
	if step := stepOf(line); step != "" {
		say(t.progress, showable(step))
	}
}

// stepOf is the step that a line of mmdebstrap announces, "" if none.
func stepOf(line string) string {
	step, ok := strings.CutPrefix(line, "I: ")
	if !ok {
		return ""
	}
	if strings.HasPrefix(step, "running --customize-hook") {
		return "making the list of fonts"
	}
	for _, verb := range []string{"running ", "downloading ", "extracting ", "installing ", "cleaning ", "creating "} {
		if strings.HasPrefix(step, verb) {
			return strings.TrimSuffix(step, "...")
		}
	}
	return ""
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
