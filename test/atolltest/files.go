// Package atolltest starts real servers with real sandboxes for end-to-end
// tests, speaks to them over HTTP, and counts what they leave on the machine.
//
// It needs the built binaries (bin/, or the folder ATOLL_TEST_BIN) and a data
// folder that holds the default image (.cache/test-data, or the folder
// ATOLL_TEST_DATA). What is missing fails a test with the command that makes it.
package atolltest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Image is the name of the image that the tests run programs in.
const Image = "default"

// Soak reports whether the long versions of the tests are asked for, with
// ATOLL_SOAK=1.
func Soak() bool { return os.Getenv("ATOLL_SOAK") == "1" }

// Count returns the number of repetitions: short, or long in a soak.
func Count(short, long int) int {
	if Soak() {
		return long
	}
	return short
}

// repo returns the folder of the sources.
func repo() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the tests must run inside the source tree")
}

// folder returns the folder that a variable names, or one of the repository.
func folder(variable, inRepo string) (string, error) {
	if dir := os.Getenv(variable); dir != "" {
		return filepath.Abs(dir)
	}
	root, err := repo()
	return filepath.Join(root, inRepo), err
}

// Binary returns the path of the built atoll.
func Binary() (string, error) {
	dir, err := folder("ATOLL_TEST_BIN", "bin")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"atoll", "atoll-guest", "atoll-guestd", "atoll-redteam", "atoll-runsc", "gvisor-bin/gvisor_sentry"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("a built binary is missing; run 'make build': %w", err)
		}
	}
	return filepath.Join(dir, "atoll"), nil
}

// ImageDir returns the folder of the image that the tests run programs in.
func ImageDir() (string, error) {
	data, err := folder("ATOLL_TEST_DATA", ".cache/test-data")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(data, "images", Image)
	if _, err := os.Stat(filepath.Join(dir, "image.json")); err != nil {
		return "", fmt.Errorf("the tests' image is missing; make it with 'bin/atoll image build --data-dir %s': %w", data, err)
	}
	return filepath.EvalSymlinks(dir)
}
