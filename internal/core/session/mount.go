package session

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/core/execution"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/storage"
	"github.com/atoll-run/atoll/internal/core/upload"
)

// MountType is a kind of Mount.
type MountType string

// Kinds of mounts.
const (
	MountFile   MountType = "file"           // Content at Path
	MountGit    MountType = "git_repository" // a clone of URL in the folder Path
	MountVolume MountType = "volume"         // Path is the part of a connection that the session mounts
)

// Mount is something that a session's sandboxes contain from the start. Files and repositories go
// into the sandbox named sandbox.Default, volumes into every sandbox.
type Mount struct {
	Type MountType
	// Path is relative to the home directory. For a volume it is below storage.Root. For an
	// uploaded file of an agent without named sandboxes it may be below Uploads.
	Path    string
	Content []byte `json:",omitempty"` // for a file
	// File is the uploaded file to copy, instead of Content.
	File upload.ID `json:",omitzero"`

	URL string `json:",omitzero"` // for a repository
	Ref string `json:",omitzero"` // a branch, tag or commit; "" for the default branch
	// Token names the variable with the password for URL. It must be a secret bound to the URL's
	// host, so that the sandbox sees only a placeholder.
	Token string `json:",omitzero"`
}

// Uploads is a read-only directory outside the home for copies of uploaded files.
const Uploads = "/mnt/session"

// Limits of a session's mounts.
const (
	MaxMounts       = 20
	MaxMountContent = 128 << 10 // bytes of all files
	maxMountPath    = 1024
	maxMountURL     = 2048
)

var (
	refPattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$`)
	tokenPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

func invalidMount(i int, format string, args ...any) error {
	return fault.New(fault.Invalid, "mounts[%d]"+format, append([]any{i}, args...)...)
}

// CheckMounts validates mounts and makes their paths relative to the home. Errors name the invalid
// field. pooled says that the agent uses named sandboxes; other agents support only copies of
// uploaded files.
func CheckMounts(all []Mount, pooled bool) error {
	if len(all) > MaxMounts {
		return fault.New(fault.Invalid, "mounts must have at most %d entries", MaxMounts)
	}
	size := 0
	var places []string
	for i := range all {
		m := &all[i]
		if err := m.check(i, pooled); err != nil {
			return err
		}
		if size += len(m.Content); size > MaxMountContent {
			return invalidMount(i, ".content: the files of mounts must have at most %d bytes together; write larger ones with the session's tools, or have them in a volume", MaxMountContent)
		}
		if m.Type == MountVolume {
			continue
		}
		for _, other := range places {
			if m.Path == other || strings.HasPrefix(m.Path, other+"/") || strings.HasPrefix(other, m.Path+"/") {
				return invalidMount(i, ".path: %q and %q are in the same place", m.Path, other)
			}
		}
		places = append(places, m.Path)
	}
	_, err := SubPaths(all)
	return err
}

func (m *Mount) check(i int, pooled bool) error {
	switch {
	case m.File == "" && !pooled:
		return invalidMount(i, ": an agent without the tool sandboxes can have mounts of the type %s with file_id alone", MountFile)
	case m.File != "" && (m.Type != MountFile || m.Content != nil):
		return invalidMount(i, ".file_id is of mounts of the type %s without content", MountFile)
	case m.File != "" && !pooled && belowUploads(m.Path):
		return nil
	}
	if m.Type != MountGit && m.URL+m.Ref+m.Token != "" {
		return invalidMount(i, ": url, ref and token are of mounts of the type %s", MountGit)
	}
	switch m.Type {
	case MountVolume:
		return nil // SubPaths says
	case MountFile, MountGit:
	default:
		return invalidMount(i, ".type must be %s, %s or %s", MountFile, MountGit, MountVolume)
	}
	at, err := belowHome(m.Path)
	if err != nil && m.File != "" && !pooled {
		err = fmt.Errorf("must be below %s or %s, and at most %d bytes", runtime.Home, Uploads, maxMountPath)
	}
	if err != nil {
		return invalidMount(i, ".path %s", err)
	}
	m.Path = at
	if m.Type == MountFile {
		return nil
	}
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || len(m.URL) > maxMountURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "" || strings.ContainsAny(m.URL, " \t\r\n\x00"):
		return invalidMount(i, ".url must be an https URL without user and fragment, of at most %d bytes", maxMountURL)
	case m.Ref != "" && (!refPattern.MatchString(m.Ref) || strings.Contains(m.Ref, "..")):
		return invalidMount(i, ".ref must be the name of a branch or tag, or a commit, of at most 200 letters, digits, '.', '_', '/' and '-'")
	case m.Token != "" && !tokenPattern.MatchString(m.Token):
		return invalidMount(i, ".token must be the name of a variable")
	case m.Token != "" && u.Scheme != "https":
		return invalidMount(i, ".token: a password is sent by https alone")
	}
	return nil
}

func belowUploads(p string) bool {
	return strings.HasPrefix(p, Uploads+"/") && p == path.Clean(p) && len(p) <= maxMountPath && !strings.ContainsRune(p, 0)
}

// Copies returns the uploaded files to copy into the sandbox of an agent without named sandboxes.
func Copies(all []Mount) (out []execution.FileRef) {
	for _, m := range all {
		if m.File != "" {
			at := m.Path
			if !path.IsAbs(at) {
				at = path.Join(runtime.Home, at)
			}
			out = append(out, execution.FileRef{ID: string(m.File), Path: at})
		}
	}
	return out
}

// belowHome returns a path relative to the home directory.
func belowHome(p string) (string, error) {
	rel, _ := strings.CutPrefix(p, runtime.Home+"/")
	rel = path.Clean(rel)
	if p == "" || len(p) > maxMountPath || strings.ContainsRune(p, 0) || path.IsAbs(rel) || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("must be below %s, and at most %d bytes", runtime.Home, maxMountPath)
	}
	return rel, nil
}

// SubPaths returns the connections that a session's sandboxes mount; nil for all.
func SubPaths(all []Mount) ([]storage.SubPath, error) {
	var entries []string
	at := -1
	for i := range all {
		if all[i].Type == MountVolume {
			entries, at = append(entries, all[i].Path), i
		}
	}
	if at < 0 {
		return nil, nil
	}
	out, err := storage.ParseSubPaths(entries)
	if err != nil {
		return nil, fault.New(fault.Invalid, "mounts: paths of volumes must be in sub_paths: %v", err)
	}
	return out, nil
}
