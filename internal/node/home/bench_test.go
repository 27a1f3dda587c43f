package home

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/test/atolltest"
)

// bigHome makes a home of 10,000 files with 200 MB.
func bigHome(tb testing.TB) string {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "home")
	rnd := rand.New(rand.NewPCG(1, 6))
	for i := range 10_000 {
		path := filepath.Join(dir, fmt.Sprint("pkg", i/250), fmt.Sprint("mod", i/25))
		if err := os.MkdirAll(path, 0o755); err != nil {
			tb.Fatal(err)
		}
		data := make([]byte, 20_000)
		for j := range data {
			data[j] = byte(rnd.IntN(40)) + 'a'
		}
		if err := os.WriteFile(filepath.Join(path, fmt.Sprintf("file%d.py", i)), data, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	g := &grower{t: tb, dir: dir}
	g.ownAll()
	var last, now unix.Timespec
	if st, err := os.Lstat(filepath.Join(dir, "pkg39", "mod399", "file9999.py")); err != nil {
		tb.Fatal(err)
	} else {
		last = unix.Timespec(st.Sys().(*syscall.Stat_t).Ctim)
	}
	atolltest.Until(tb, time.Second, "the clock has left the last file behind", func() bool {
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			tb.Fatal(err)
		}
		return now.Nano() > last.Nano()
	})
	return dir
}

func BenchmarkSaveUnchanged(b *testing.B) {
	s, _ := folderStore(b)
	dir := bigHome(b)
	base := save(b, s, dir, nil)
	for b.Loop() {
		save(b, s, dir, base)
	}
}

func BenchmarkSaveOneFile(b *testing.B) {
	s, _ := folderStore(b)
	dir := bigHome(b)
	base := save(b, s, dir, nil)
	i := 0
	for b.Loop() {
		i++
		if err := os.WriteFile(filepath.Join(dir, "pkg3", "mod30", "changed"), fmt.Append(nil, i), 0o644); err != nil {
			b.Fatal(err)
		}
		base = save(b, s, dir, base)
	}
}

func BenchmarkSaveAll(b *testing.B) {
	dir := bigHome(b)
	for b.Loop() {
		s, _ := folderStore(b)
		save(b, s, dir, nil)
	}
}

func BenchmarkRestore(b *testing.B) {
	s, _ := folderStore(b)
	tree := save(b, s, bigHome(b), nil)
	for b.Loop() {
		restore(b, s, load(b, s, tree.State), b.TempDir(), nil)
	}
}
