package disk

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMergeTree(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	script := `set -e; umask 077; mkdir -p from/a/b 'from/ -n
x'; cd from; printf data >a/b/file; chmod 4751 a/b/file; ln a/b/file a/again; ln -s ../../../etc/passwd a/link; ln -s nowhere broken; mkfifo -m 620 pipe
: >empty; dd if=/dev/urandom of=holes bs=4096 count=1 seek=1000 2>/dev/null; truncate -s 40M holes; chmod 1777 a; touch -d '2001-02-03 04:05:06.789' a/b/file a; touch -h -d 2002-03-04 broken
chown 1234:5678 a/again; chown -h 7:8 broken; setfattr -n user.note -v hello empty 2>/dev/null || true; chmod 0 empty`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := unix.Lsetxattr(filepath.Join(from, "holes"), "user.note", []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
	if err := MergeTree(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	list := func(at string) string {
		cmd := exec.Command("find", ".", "-printf", `%P|%y|%m|%U:%G|%n|%s|%T@|%l\n`)
		cmd.Dir = at
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(out, []byte("\n"))
		for i := range lines {
			for j := range lines[:i] {
				if bytes.Compare(lines[j], lines[i]) > 0 {
					lines[i], lines[j] = lines[j], lines[i]
				}
			}
		}
		return string(bytes.Join(lines, []byte("\n")))
	}
	if a, b := list(from), list(to); a != b {
		t.Errorf("the copy is\n%s\nof\n%s", b, a)
	}
	for _, name := range []string{"a/b/file", "holes"} {
		a, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(to, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(to, "holes"), &st); err != nil || st.Blocks*512 > 1<<20 {
		t.Errorf("the holes of a file take %d bytes, %v", st.Blocks*512, err)
	}
	value := make([]byte, 10)
	if n, err := unix.Lgetxattr(filepath.Join(to, "holes"), "user.note", value); err != nil || string(value[:n]) != "kept" {
		t.Errorf("attribute %q, %v", value[:n], err)
	}
	if err := MergeTree(t.Context(), from, to); err == nil {
		t.Error("a copy overwrites what is there")
	}
}
