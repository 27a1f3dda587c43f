package atolltest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childSeed is set in the child process of TestInMemory.
const childSeed = "ATOLL_TEST_MEMORY_SEED"

// needle returns bytes that only a process that computes them holds in memory.
func needle(seed, name string) []byte {
	sum := sha256.Sum256([]byte(seed + name))
	return sum[:]
}

// held keeps the child's needles on its heap, on its own pages, and in a mapped file.
var held [][]byte

func holdNeedles(seed string) error {
	heap := make([]byte, 3*searchBuffer) // the needle lies across two reads
	copy(heap[2*searchBuffer-7:], needle(seed, "heap"))
	pages, err := unix.Mmap(-1, 0, 8*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	copy(pages[7*os.Getpagesize():], needle(seed, "pages"))
	f, err := os.CreateTemp("", "needle-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := f.Truncate(int64(3 * os.Getpagesize())); err != nil {
		return err
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, 3*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(mapped, needle(seed, "file"))
	held = [][]byte{heap, pages, mapped}
	return f.Truncate(int64(os.Getpagesize())) // the pages behind cannot be read
}

// TestInMemory searches a child process for needles that it holds, for others, and after its
// end.
func TestInMemory(t *testing.T) {
	if seed := os.Getenv(childSeed); seed != "" {
		if err := holdNeedles(seed); err != nil {
			t.Fatal(err)
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
		fmt.Println(len(held))
		return
	}
	const seed = "seed"
	cmd := exec.Command(os.Args[0], "-test.run=^TestInMemory$")
	cmd.Env = append(os.Environ(), childSeed+"="+seed)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	needles := Needles{"environment": []byte(childSeed + "=" + seed)}
	for _, name := range []string{"heap", "pages", "file", "another", "heap, of course not"} {
		needles[name] = needle(seed, name)
	}
	want := map[string]bool{"environment": true, "heap": true, "pages": true, "file": true}
	if got := InMemory(t, cmd.Process.Pid, needles); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	pid := cmd.Process.Pid
	in.Close()
	_, _ = io.Copy(io.Discard, said)
	if _, err := searchMemory(pid, needles); err == nil { // it is not waited for yet
		t.Error("a process that has ended was searched")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestInFiles(t *testing.T) {
	first, second, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(path string, data []byte) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	across := write(filepath.Join(second, "deep", "er", "across"), append(bytes.Repeat([]byte{'x'}, searchBuffer-7), "needle one"...))
	end := write(filepath.Join(first, "end"), append(make([]byte, 2*searchBuffer), "needle two"...))
	write(filepath.Join(outside, "f"), []byte("needle three"))
	write(filepath.Join(first, "empty"), nil)
	if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(first, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(first, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	needles := Needles{}
	for _, text := range []string{"needle one", "needle two", "needle three", "needle four"} {
		needles[text] = []byte(text)
	}
	want := map[string]string{"needle one": across, "needle two": end}
	if got := InFiles(t, needles, first, second); !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if err := searchFolder(filepath.Join(first, "missing"), needles, nil); err == nil {
		t.Error("a folder that does not exist was searched")
	}
	if err := searchFolder(first, nil, nil); err == nil {
		t.Error("nothing was searched for")
	}
}
