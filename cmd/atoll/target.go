package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/app/localserver"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

// Variables of the environment that every client of a server reads.
const (
	baseURLEnv = "ATOLL_BASE_URL"
	apiKeyEnv  = "ATOLL_API_KEY"
)

// Files in data_dir that have the first admin key and the development key.
const (
	adminKeyFile = "admin-key"
	devKeyFile   = "dev-key"
)

// endpoint is a server as its clients see it.
type endpoint struct{ url, key string }

// target says which server a command talks to, and with which key.
type target struct {
	app     *cli
	baseURL string // flag; "" for ATOLL_BASE_URL, else this machine's server
	keyFile string // flag; "" for the rules of find
	dataDir string // flag of this machine's server, as is the next
	config  string
	local   string // the file in data_dir that has the key for this command

	overridden bool // found by find: ATOLL_API_KEY is used in place of that file
}

// addFlags adds the flags of commands that only talk to a server.
func (t *target) addFlags(flags *pflag.FlagSet) {
	t.addServerFlags(flags)
	flags.StringVar(&t.dataDir, "data-dir", "", "data folder of this machine's server (ATOLL_DATA_DIR)")
	flags.StringVar(&t.config, "config", "", "configuration file of this machine's server ("+config.FileEnv+")")
}

// addServerFlags adds the flags that name a server and a key.
func (t *target) addServerFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.baseURL, "base-url", "", "URL of the server ("+baseURLEnv+")")
	flags.StringVar(&t.keyFile, "key-file", "", "file with the API key, - for stdin ("+apiKeyEnv+")")
}

const targetHelp = `

The server is --base-url or ATOLL_BASE_URL, else the one that uses this machine's
data folder (--data-dir, ATOLL_DATA_DIR), else the last one that you started and
that still runs, whatever its port. The key is that of --key-file, else of
ATOLL_API_KEY%s.`

// help describes the rules of find.
func (t *target) help() string {
	if t.local == adminKeyFile {
		return fmt.Sprintf(targetHelp, ", else for this machine's server the\nadmin key in its data folder, where that can be read")
	}
	return fmt.Sprintf(targetHelp, ", else for this machine's server the\ndevelopment key in its data folder")
}

// given is the URL that a flag or the environment names, "" for this machine's.
func (t *target) given() string {
	if t.baseURL != "" {
		return t.baseURL
	}
	return t.app.getenv(baseURLEnv)
}

// runningDataDir is the data folder of the last server that this user started, if that runs and no
// server uses the default folder.
func (a *cli) runningDataDir(otherwise string) string {
	if _, err := localserver.Find(otherwise); !errors.Is(err, localserver.ErrNone) {
		return otherwise
	}
	if last, err := localserver.Last(a.getenv); err == nil {
		return last
	}
	return otherwise
}

// find returns the server and the key. A key that the caller names, in a file or the environment,
// comes before those of this machine's server.
func (t *target) find() (endpoint, error) {
	base, key := t.given(), ""
	if base != "" && !strings.HasPrefix(base, "http://") && !strings.HasPrefix(base, "https://") {
		return endpoint{}, wrong("the server's URL must begin with http:// or https://, not %q", base)
	}
	if t.keyFile != "" {
		text, err := t.app.readSmall(t.keyFile)
		if err != nil {
			return endpoint{}, err
		}
		if key = text; base != "" {
			return endpoint{base, key}, nil
		}
	}
	cfg, err := config.Load(t.sources())
	if err != nil {
		if base == "" {
			return endpoint{}, &exit{exitUsage, err}
		}
		return t.elsewhere(base) // which needs no settings of a server
	}
	here, err := localserver.Find(cfg.DataDir)
	found := err == nil
	switch {
	case base == "" && found:
		base = here.URL
	case base == "":
		base = localserver.URL(cfg.Listen, cfg.TLSCert != "")
	case t.dataDir != "" || found && sameServer(base, here.URL): // this machine's all the same
	default:
		return t.elsewhere(base)
	}
	if key == "" {
		if key, err = t.localKey(cfg); err != nil {
			return endpoint{}, err
		}
	}
	return endpoint{base, key}, nil
}

// dataOf is the data folder of a server of this machine that can be read, "" for any other.
func (t *target) dataOf(e endpoint) string {
	cfg, err := config.Load(t.sources())
	if err != nil {
		return ""
	}
	here, err := localserver.Find(cfg.DataDir)
	if err != nil || !sameServer(e.url, here.URL) {
		return ""
	}
	return cfg.DataDir
}

// sources are the settings of this machine's server, as far as flags name them.
func (t *target) sources() config.Sources {
	s := config.Sources{File: t.config, Getenv: t.app.getenv, Flags: map[string]string{}, DataDir: t.app.runningDataDir}
	if t.dataDir != "" {
		s.Flags["data-dir"] = t.dataDir
	}
	return s
}

// elsewhere is another machine's server: the keys of this one are not for it.
func (t *target) elsewhere(base string) (endpoint, error) {
	key := t.app.getenv(apiKeyEnv)
	if key == "" {
		return endpoint{}, t.noKey("for " + base)
	}
	return endpoint{base, key}, nil
}

// localKey is the key for the server of a data folder.
func (t *target) localKey(cfg *config.Config) (string, error) {
	path := filepath.Join(cfg.DataDir, t.local)
	if given := t.app.getenv(apiKeyEnv); given != "" {
		t.overridden = exists(path)
		return given, nil
	}
	if t.local != adminKeyFile && cfg.DevKey != "" {
		return cfg.DevKey, nil
	}
	key, err := t.app.readSmall(path)
	switch {
	case err == nil:
		return key, nil
	case t.given() == "" && !exists(cfg.DataDir):
		return "", errors.New(noServer(cfg))
	case t.local == adminKeyFile:
		return "", fmt.Errorf("%w (%w)", t.noKey("that may administer"), err)
	}
	return "", fmt.Errorf("%w (%w)", t.noKey(""), err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// noServer says what to do where no server of this machine was found.
func noServer(cfg *config.Config) string {
	return fmt.Sprintf("no server uses the data folder %s: start one with 'atoll serve', or say with --data-dir or --base-url where it is", cfg.DataDir)
}

// noKey says how to give a key.
func (t *target) noKey(which string) error {
	if which != "" {
		which = " " + which
	}
	if t.app.getenv("ATOLL_KEY") != "" {
		return fmt.Errorf("no key%s: ATOLL_KEY is not read; the variable is %s", which, apiKeyEnv)
	}
	return fmt.Errorf("no key%s: pass one with --key-file or set %s", which, apiKeyEnv)
}

// sameServer reports whether two URLs lead to one server of this machine.
func sameServer(a, b string) bool {
	x, err := url.Parse(a)
	y, errY := url.Parse(b)
	return err == nil && errY == nil && x.Scheme == y.Scheme && x.Port() == y.Port() && strings.Trim(x.Path, "/") == "" && isLoopback(x.Hostname()) && isLoopback(y.Hostname())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// explain adds the next step to an error of a server that cannot be reached or that rejects the
// key in ATOLL_API_KEY.
func (t *target) explain(err error) error {
	if e, ok := errors.AsType[*sdk.Error](err); ok && t.overridden && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return fmt.Errorf("%w; the key comes from %s: unset it to use this machine's key (%s in the data folder)", err, apiKeyEnv, t.local)
	}
	if _, ok := errors.AsType[*net.OpError](err); !ok {
		return err
	}
	return t.unreachable().Explain(err)
}

// unreachable is the next step if nothing listens at the server's address.
func (t *target) unreachable() localserver.Advice {
	if t.given() != "" {
		return localserver.Advice{Text: fmt.Sprintf("start the server with 'atoll serve', or set its address with --base-url or %s", baseURLEnv)}
	}
	cfg, err := config.Load(t.sources())
	if err != nil {
		return localserver.Advice{}
	}
	return localserver.Advice{Text: noServer(cfg), Refused: true}
}

// readSmall reads a file that holds one short text, such as a key; - is stdin.
func (a *cli) readSmall(path string) (string, error) {
	in := a.std.in
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		in = file
	}
	raw, err := io.ReadAll(io.LimitReader(in, 64<<10))
	if err != nil {
		return "", err
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return text, nil
}

// writeKey writes a key to a file that only its user can read, in the place of
// one that is there if replace is set.
func writeKey(path, key string, replace bool) error { return writePrivate(path, key+"\n", replace) }

// writePrivate writes a file that only its user can read as a whole or not at all, in the
// place of one that is there if replace is set.
func writePrivate(path, text string, replace bool) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err == nil {
		if replace {
			err = os.Rename(file.Name(), path)
		} else {
			err = os.Link(file.Name(), path) // which fails where there is one
		}
	}
	if left := os.Remove(file.Name()); !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return err
}

// devServer is this machine's server with its development key, whatever key the
// environment names.
func (t *target) devServer() (endpoint, error) {
	getenv := func(name string) string {
		if name == apiKeyEnv {
			return ""
		}
		return t.app.getenv(name)
	}
	own := target{app: &cli{getenv: getenv, std: t.app.std}, baseURL: t.baseURL, dataDir: t.dataDir, config: t.config, local: devKeyFile}
	return own.find()
}
