package session

import (
	"bytes"
	"strings"
	"testing"
)

func TestMounts(t *testing.T) {
	fine := []Mount{
		{Type: MountFile, Path: "/home/user/a/../notes.txt", Content: []byte("x")}, {Type: MountGit, Path: "repo", URL: "https://git.example.com/a/b.git", Ref: "v1/x-2", Token: "GIT_TOKEN"},
		{Type: MountVolume, Path: "/data/team/reports"},
	}
	if err := CheckMounts(fine, true); err != nil || fine[0].Path != "notes.txt" {
		t.Errorf("%v, %+v", err, fine)
	}
	if sub, err := SubPaths(fine); err != nil || len(sub) != 1 || sub[0].Slug != "team" {
		t.Errorf("%v, %v", sub, err)
	}
	git := func(change func(*Mount)) []Mount {
		m := Mount{Type: MountGit, Path: "repo", URL: "https://git.example.com/a"}
		change(&m)
		return []Mount{m}
	}
	for says, all := range map[string][]Mount{
		"at most 20":              make([]Mount, 21),
		"mounts[0].type":          {{Type: "disk", Path: "a"}},
		"mounts[1].path: \"a/b\"": {{Type: MountFile, Path: "a"}, {Type: MountFile, Path: "a/b"}},
		"mounts[1].path: \"a\"":   {{Type: MountFile, Path: "a/b"}, {Type: MountGit, Path: "a", URL: "https://x.example"}},
		"mounts[0].path must be":  {{Type: MountFile, Path: "/etc/passwd"}},
		"mounts[1].content":       {{Type: MountFile, Path: "a", Content: bytes.Repeat([]byte("x"), MaxMountContent)}, {Type: MountFile, Path: "b", Content: []byte("x")}},
		"are of mounts of":        {{Type: MountFile, Path: "a", Ref: "x"}},
		"sub_paths":               {{Type: MountVolume, Path: "/data/team"}},
		"one entry per":           {{Type: MountVolume, Path: "/data/team/a"}, {Type: MountVolume, Path: "/data/team/b"}},
		"mounts[0].url":           git(func(m *Mount) { m.URL = "ssh://git.example.com/a" }),
		"mounts[0].url must":      git(func(m *Mount) { m.URL = "https://me:pass@git.example.com/a" }),
		"mounts[0].ref":           git(func(m *Mount) { m.Ref = "--upload-pack=x" }),
		"mounts[0].token must":    git(func(m *Mount) { m.Token = "a b" }),
		"by https alone":          git(func(m *Mount) { m.URL, m.Token = "http://git.example.com/a", "A" }),
	} {
		if err := CheckMounts(all, true); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	for _, at := range []string{"", ".", "..", "../x", "a/../..", "/home/user", "/home/user/..", "/home/username/x", "a\x00", strings.Repeat("x", 1025)} {
		if err := CheckMounts([]Mount{{Type: MountFile, Path: at}}, true); err == nil {
			t.Errorf("%q is taken", at)
		}
	}
}

func TestCopies(t *testing.T) {
	const id = "file_0123456789abcdef0123456789abcdef"
	all := []Mount{{Type: MountFile, Path: Uploads + "/uploads/a.csv", File: id}, {Type: MountFile, Path: "/home/user/b.csv", File: id}}
	if err := CheckMounts(all, false); err != nil {
		t.Fatal(err)
	}
	if got := Copies(all); len(got) != 2 || got[0].Path != "/mnt/session/uploads/a.csv" || got[1].Path != "/home/user/b.csv" || got[1].ID != id {
		t.Errorf("%+v", got)
	}
	if err := CheckMounts(all[:1], true); err == nil {
		t.Error("a named sandbox takes what is not below its home")
	}
	for says, m := range map[string]Mount{
		"mounts[0]: an agent":  {Type: MountFile, Path: "a", Content: []byte("x")},
		"mounts[0].file_id is": {Type: MountGit, Path: "a", File: id},
		"without content":      {Type: MountFile, Path: "a", File: id, Content: []byte("x")},
		"or /mnt/session":      {Type: MountFile, Path: "/mnt/session/../etc/passwd", File: id},
		"mounts[0].path must":  {Type: MountFile, Path: "/skills/x", File: id},
	} {
		if err := CheckMounts([]Mount{m}, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
}
