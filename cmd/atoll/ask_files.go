package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// saveShared saves the files that a model shared to a folder; without one it says how
// they are got.
func (a *cli) saveShared(ctx context.Context, c *sdk.Client, id, folder string, force bool, shared []sharedItem) error {
	if len(shared) == 0 {
		return nil
	}
	if folder == "" {
		fmt.Fprintf(a.std.err, "atoll: %d files were shared; --out FOLDER saves them, and GET /v1/responses/%s/files lists them\n", len(shared), id)
		return nil
	}
	return a.saveFiles(folder, force, shared, func(file string, to io.Writer) error { return c.ResponseFile(ctx, id, file, to) })
}

// saveFiles saves files to a folder, each under a name of its own. The names are a model's, so
// hidden files are refused, and only force replaces a file of the folder. get writes the contents of one.
func (a *cli) saveFiles(folder string, force bool, files []sharedItem, get func(id string, to io.Writer) error) error {
	if err := os.MkdirAll(folder, 0o777); err != nil { // as the user's umask has it
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	taken := map[string]bool{}
	var failed []error
	for _, f := range files {
		name := freeName(fileName(f.name), taken)
		if err := saveFile(root, f.id, name, force, get); err != nil {
			failed = append(failed, fmt.Errorf("save %s: %w", name, err))
			continue
		}
		fmt.Fprintf(a.std.err, "atoll: saved %s\n", filepath.Join(folder, name))
	}
	return errors.Join(failed...)
}

// fileName is the last part of a name that a model chose, without characters that a terminal obeys
// or shows as something else.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, path.Base("/"+filepath.ToSlash(name)))
}

// freeName is a name for a file that no other of those that are saved has.
func freeName(name string, taken map[string]bool) string {
	if name == "/" || name == "." || name == ".." {
		name = "file"
	}
	free := name
	for i := 2; taken[free]; i++ {
		ext := path.Ext(name)
		free = fmt.Sprintf("%s-%d%s", name[:len(name)-len(ext)], i, ext)
	}
	taken[free] = true
	return free
}

// saveFile writes a file as a whole or not at all, through no link that leads out of the
// folder. Without force it replaces none.
func saveFile(root *os.Root, id, name string, force bool, get func(id string, to io.Writer) error) (err error) {
	if strings.HasPrefix(name, ".") {
		return errors.New("files whose names begin with a dot are not saved, because programs read them as settings")
	}
	if !force {
		place, taken := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(taken, fs.ErrExist) {
			return errors.New("a file with that name exists; --force replaces it")
		}
		if taken == nil {
			taken = place.Close()
		}
		if taken != nil {
			return taken
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, root.Remove(name))
			}
		}()
	}
	part := "." + rand.Text() + ".part"
	out, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	err = get(id, out)
	if err = errors.Join(err, out.Close()); err == nil {
		err = root.Rename(part, name)
	}
	if err != nil {
		err = errors.Join(err, root.Remove(part))
	}
	return err
}

// lastFile has the id of the last response of each server that the user asked.
func (a *cli) lastFile() (string, error) {
	if dir := a.getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "atoll", "responses.json"), nil
	}
	home := a.getenv("HOME")
	if home == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is set; pass the response id with --previous")
	}
	return filepath.Join(home, ".local", "state", "atoll", "responses.json"), nil
}

func readResponses(name string) map[string]string {
	last := map[string]string{}
	if text, err := os.ReadFile(name); err == nil {
		_ = json.Unmarshal(text, &last) // what is no JSON is begun anew
	}
	return last
}

// lastResponse is the id of the response that --continue goes on from.
func (a *cli) lastResponse(server string) (string, error) {
	name, err := a.lastFile()
	if err != nil {
		return "", err
	}
	id := readResponses(name)[server]
	if id == "" {
		return "", fmt.Errorf("no earlier answer from %s to continue", server)
	}
	return id, nil
}

// rememberResponse keeps the id for --continue. It is no error if it cannot.
func (a *cli) rememberResponse(server string, r *sdk.Response) {
	if r.Status == "failed" || r.Status == "cancelled" {
		return
	}
	name, err := a.lastFile()
	if err != nil {
		return
	}
	last := readResponses(name)
	last[server] = r.ID
	text, err := json.Marshal(last)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = writePrivate(name, string(text), true)
	}
	if err != nil {
		fmt.Fprintf(a.std.err, "atoll: --continue will not find this answer: %v\n", err)
	}
}
