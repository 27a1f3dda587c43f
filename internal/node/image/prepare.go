package image

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/node/image/erofs"
	"github.com/atoll-run/atoll/internal/node/image/tree"
)

// prepare gives an image what every sandbox counts on: the folders that are
// mounted over, the user that programs run as, and that user's home.
func prepare(root *erofs.Node) error {
	root.Mode = erofs.TypeDir | 0o755
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/etc", "/home"} {
		if _, err := tree.MkdirAll(root, dir, 0o755); err != nil {
			return fault.Wrap(fault.Invalid, err, fmt.Sprintf("the image has something other than a folder at %s", dir))
		}
	}
	tmp, err := tree.MkdirAll(root, "/tmp", 0o777)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the image has something other than a folder at /tmp")
	}
	tmp.Mode = erofs.TypeDir | 0o1777
	if err := tree.Put(root, runtime.GuestDir, erofs.NewDir(0o755)); err != nil {
		return err
	}
	home, err := tree.MkdirAll(root, runtime.Home, 0o755)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the image has something other than a folder at "+runtime.Home)
	}
	home.UID, home.GID = runtime.UID, runtime.GID
	if err := addUser(root); err != nil {
		return fault.Wrap(fault.Invalid, err, "the image's /etc/passwd or /etc/group cannot be read")
	}
	return nil
}

// accountsLimit bounds /etc/passwd and /etc/group, bytes.
const accountsLimit = 4 << 20

// addUser adds the sandbox's user and group where their numbers have no name.
func addUser(root *erofs.Node) error {
	shell := "/bin/sh"
	if n, _, err := tree.Lookup(root, "/bin/bash"); err == nil && n.IsRegular() {
		shell = "/bin/bash"
	}
	passwd := func(name string) string {
		return fmt.Sprintf("%s:x:%d:%d::%s:%s", name, runtime.UID, runtime.GID, runtime.Home, shell)
	}
	group := func(name string) string { return fmt.Sprintf("%s:x:%d:", name, runtime.GID) }
	user, err := addAccount(root, "/etc/passwd", runtime.UID, "root:x:0:0:root:/root:/bin/sh", passwd)
	if err != nil {
		return err
	}
	own, err := addAccount(root, "/etc/group", runtime.GID, "root:x:0:", group)
	if err != nil {
		return err
	}
	// sudo, su and cron refuse users without these lines, where other users have them.
	if err := addShadow(root, "/etc/shadow", user, ":*:::::::"); err != nil {
		return err
	}
	return addShadow(root, "/etc/gshadow", own, ":!::")
}

// addShadow appends a line for an account without a password, where the image has the file.
func addShadow(root *erofs.Node, file, name, fields string) error {
	old, _, err := tree.Lookup(root, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	data, err := tree.ReadFile(root, file, accountsLimit)
	if err != nil {
		return err
	}
	for l := range strings.Lines(string(data)) {
		if strings.HasPrefix(l, name+":") {
			return nil
		}
	}
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	changed := erofs.NewFile(old.Mode&^erofs.TypeMask, text+name+fields+"\n")
	changed.UID, changed.GID = old.UID, old.GID
	return tree.Put(root, file, changed)
}

// addAccount appends a line for id to a file of accounts, unless it has one, and returns
// the account's name.
func addAccount(root *erofs.Node, file string, id int, first string, line func(name string) string) (string, error) {
	data, err := tree.ReadFile(root, file, accountsLimit)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte(first+"\n"), nil
	}
	if err != nil {
		return "", err
	}
	var names []string
	for l := range strings.Lines(string(data)) {
		fields := strings.Split(strings.TrimSpace(l), ":")
		if len(fields) >= 3 && fields[2] == strconv.Itoa(id) {
			return fields[0], nil
		}
		names = append(names, fields[0])
	}
	name := "user"
	for slices.Contains(names, name) {
		name += "_"
	}
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return name, tree.Put(root, file, erofs.NewFile(0o644, text+line(name)+"\n"))
}
