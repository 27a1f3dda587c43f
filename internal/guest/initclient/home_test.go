package initclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/guest/guesttest"
	"github.com/atoll-run/atoll/internal/guest/initclient"
)

// homePrograms tell of the folder they are in by every way there is.
var homePrograms = map[string]string{
	guesttest.Python: `
import os, sys
print(os.getcwd(), __file__, sys.path[0], sorted(os.listdir()), sorted(os.listdir('/')))
print(os.stat('.').st_ino == os.stat('/home/user').st_ino, os.path.samefile('main.py', '/home/user/main.py'))
import mod
print(mod.__file__, open('deep/skel').read(), os.readlink('link'))
print(oct(os.stat('deep/skel').st_mode), os.stat('deep/skel').st_uid, os.stat('root').st_uid, oct(os.stat('deep').st_mode))
open('new', 'w').write('relative')
print(open('/home/user/new').read())
os.system('pwd; ls')
`,
	guesttest.Node: `
const fs = require('fs');
console.log(process.cwd(), __filename, process.argv[1], fs.readdirSync('.'), fs.readdirSync('/'));
console.log(fs.statSync('.').ino === fs.statSync('/home/user').ino, require.main.filename, module.paths);
console.log(require('./mod'), fs.readFileSync('deep/skel', 'utf8'));
fs.writeFileSync('new', 'relative');
console.log(fs.readFileSync('/home/user/new', 'utf8'));
console.log(require('child_process').execSync('pwd; ls').toString());
`,
	guesttest.Bash: `
pwd; pwd -P; echo "$PWD ${OLDPWD-none} $0"; declare -p PWD OLDPWD; dirs
ls; ls -a /
[ . -ef /home/user ] && cat deep/skel
cd deep; cd -; echo relative >new; cat /home/user/new
env | grep PWD | sort
`,
}

// furnish puts into a guest's home what an image might have there.
func furnish(t *testing.T, g *guesttest.Guest) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(g.Root(), runtime.Home)
	must(os.MkdirAll(filepath.Join(home, "deep"), 0o750))
	must(os.Chmod(filepath.Join(home, "deep"), 0o2750))
	for name, data := range map[string]string{"deep/skel": "of the image", "mod.py": "x = 1", "mod.js": "module.exports = 1"} {
		must(os.WriteFile(filepath.Join(home, name), []byte(data), 0o600))
		must(os.Chown(filepath.Join(home, name), runtime.UID, runtime.GID))
	}
	must(os.Chown(filepath.Join(home, "deep"), runtime.UID, runtime.GID))
	must(os.Chmod(filepath.Join(home, "deep"), 0o2750|os.ModeSetgid))
	must(os.WriteFile(filepath.Join(home, "root"), nil, 0o644))
	must(os.Symlink("/etc/passwd", filepath.Join(home, "link")))
	must(syscall.Mkfifo(filepath.Join(home, "fifo"), 0o600))
}

// TestAHomeThatComesLaterIsWhereTheProgramStarts: a program cannot tell that its
// interpreter waited in another folder.
func TestAHomeThatComesLaterIsWhereTheProgramStarts(t *testing.T) {
	for language, code := range homePrograms {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			spec := guesttest.Program(t, language, code)

			g := guesttest.Start(t)
			c := g.Dial(t)
			furnish(t, g)
			if err := c.Enter(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			c.Close()
			o, e, status := g.Bare(t, spec)
			if status != 0 || !strings.Contains(string(o), "of the image") || !strings.Contains(string(o), "relative") {
				t.Fatalf("bare, the program ends with %d: %s%s", status, o, e)
			}

			g = guesttest.Start(t)
			c = g.Dial(t)
			furnish(t, g)
			warm(t, c, guesttest.Warm(t, language))
			for range 2 { // a second time, as the next process would
				if err := c.Enter(t.Context(), true); err != nil {
					t.Fatal(err)
				}
			}
			got := run(t, c, spec)
			if !got.Warm {
				t.Fatal("the run was not warm")
			}
			compare(t, "stdout", got.stdout, string(o))
			compare(t, "stderr", got.stderr, string(e))
			if _, err := os.Stat(filepath.Join(g.Root(), initclient.SharedFolder)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", initclient.SharedFolder, err)
			}
		})
	}
}

// TestAHomeIsFilledOnlyIfThatIsWanted: a thread that has a state begins with that.
func TestAHomeIsFilledOnlyIfThatIsWanted(t *testing.T) {
	g, c := start(t)
	furnish(t, g)
	if err := c.Enter(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got := run(t, c, bash(t, "ls\n")); got.stdout != "main.sh\n" {
		t.Errorf("the home holds %q", got.stdout)
	}
}

// TestAHomeThatIsNotThereIsSaidSo: nothing is run in the wrong folder.
func TestAHomeThatIsNotThereIsSaidSo(t *testing.T) {
	g, c := start(t)
	if err := unix.Rmdir(filepath.Join(g.Root(), initclient.SharedFolder, initclient.HomeName)); err != nil {
		t.Fatal(err)
	}
	if err := c.Enter(t.Context(), false); err == nil {
		t.Error("a home that is not there was entered")
	}
}

// TestPackagesOfNpmDoNotDelayPython: its folder beside Python's packages is no
// reason to start another interpreter; a package of Python is.
func TestPackagesOfNpmDoNotDelayPython(t *testing.T) {
	for folder, warmed := range map[string]bool{"node_modules": true, "python3.99": false} {
		_, c := start(t)
		if got := run(t, c, bash(t, "mkdir -p ~/.local/lib/"+folder+"\n")); got.ExitCode != 0 {
			t.Fatalf("%+v", got)
		}
		warm(t, c, guesttest.Warm(t, guesttest.Python))
		if got := run(t, c, guesttest.Program(t, guesttest.Python, "print(1)")); got.Warm != warmed || got.stdout != "1\n" {
			t.Errorf("with %s: %+v", folder, got)
		}
	}
}
