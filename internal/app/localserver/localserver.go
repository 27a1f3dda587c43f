// Package localserver lets the commands of a machine find its server, whatever
// port it listens on: a server records its address in its data folder, and
// removes the record when it ends.
package localserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// LockFile is the file in a data folder that its server holds locked, with
// flock(2), for as long as it lives.
const LockFile = "lock"

// recordFile has the Record as JSON, readable by the server's user alone.
const recordFile = "server.json"

// maxRecord bounds how much of the file is read, in bytes.
const maxRecord = 64 << 10

// ErrNone says that no server uses a data folder.
var ErrNone = errors.New("no server uses this data folder")

// Record is what a server says of itself.
type Record struct {
	URL     string `json:"url"` // by which this machine reaches it, such as http://127.0.0.1:8080
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Write records a server in its data folder. Only the process that holds LockFile
// may call it.
func Write(dataDir string, r Record) error { return writeJSON(dataDir, recordFile, r) }

// writeJSON writes a file that only its user can read, as a whole or not at all.
func writeJSON(dir, name string, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, name+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		err = errors.Join(err, os.Remove(file.Name()))
	}
	return err
}

// Remove removes the record of a server that ends.
func Remove(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Find returns the record of the server that uses a data folder. The error is
// ErrNone when none does; the record of a server that was killed does not count.
func Find(dataDir string) (Record, error) {
	var r Record
	file, err := os.Open(filepath.Join(dataDir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNone
	}
	if err != nil {
		return r, err
	}
	defer file.Close()
	text := make([]byte, maxRecord)
	n, err := file.Read(text)
	if err != nil {
		return r, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	if err := parse(text[:n], &r); err != nil {
		return r, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	alive, err := locked(filepath.Join(dataDir, LockFile))
	if err != nil {
		return r, err
	}
	if !alive {
		return r, ErrNone
	}
	return r, nil
}

// parse reads a record, and checks that its URL is one.
func parse(text []byte, r *Record) error {
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is not the URL of a server", r.URL)
	}
	return nil
}

// locked reports whether a process holds the lock of a file.
func locked(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close() // and with it the lock, if it was free
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// URL is how this machine reaches a server that listens at an address, such as
// 127.0.0.1:8080. One that listens everywhere is reached by loopback.
func URL(address string, tls bool) string {
	scheme := "http"
	if tls {
		scheme = "https"
	}
	if host, port, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort("localhost", port)
		}
	}
	return scheme + "://" + address
}
