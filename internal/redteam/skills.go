package redteam

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
)

// skillCases upload skills that unpack outside their directory or expand without limit.
func skillCases() []Case {
	return []Case{
		{"skills/archives", Critical, "uploads skill archives with names, links, devices and modes that lead out of their directory", "the server rejects each", skillArchives},
		{"skills/zips", Critical, "uploads zip files with such names, links, duplicate files and inconsistent headers", "the server rejects each", skillZips},
		{"skills/bombs", High, "uploads archives that expand: zeros, many files, and instructions with expanding YAML", "the server rejects each, and answers others", skillBombs},
		{"skills/names", High, "uploads skills with names that lead out of the skills directory, and single files with such names", "the server rejects each", skillNames},
	}
}

// skillFile is a valid SKILL.md, so that the server rejects an archive only for the attack in it.
const skillFile = "---\nname: redteam-skill\ndescription: an archive that should be refused\n---\nDo nothing.\n"

// uploadSkill uploads a skill as a multipart form.
func (a *arena) uploadSkill(ctx context.Context, files map[string][]byte) (*answer, error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for name, content := range files {
		h := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="files[]"; filename="%s"`, name)}}
		part, err := w.CreatePart(h)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return a.plain.do(ctx, http.MethodPost, "/v1/skills", body.Bytes(), "Content-Type", w.FormDataContentType())
}

// unwanted reports a request that the server accepted or failed on.
func unwanted(what string, got *answer, err error) error {
	switch {
	case err != nil:
		return err
	case got.Status < 400 || got.Status >= 500:
		return found("%s: %s", what, got)
	}
	return nil
}

// inSkill packs SKILL.md and the entries of a hostile archive into the directory of a skill.
func inSkill(h hostileArchive) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	head := tar.Header{Typeflag: tar.TypeReg, Name: "redteam-skill/SKILL.md", Mode: 0o644, Size: int64(len(skillFile))}
	if err := w.WriteHeader(&head); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, skillFile); err != nil {
		return nil, err
	}
	for _, e := range h.entries {
		e.Format = tar.FormatPAX
		if !strings.HasPrefix(e.Name, "/") {
			e.Name = "redteam-skill/" + e.Name
		}
		if err := w.WriteHeader(&e); err != nil {
			return nil, err
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, payload); err != nil {
				return nil, err
			}
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func zipped(raw []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(raw) // a bytes.Buffer does not fail
	_ = w.Close()
	return out.Bytes()
}

func skillArchives(ctx context.Context, a *arena) error {
	twice := hostileArchive{name: "twice", entries: []tar.Header{file("a"), file("a")}}
	cases := hostileArchive{name: "second SKILL.md", entries: []tar.Header{file("SKILL.md")}}
	for _, h := range append(hostileArchives, twice, cases) {
		if h.name == "link-root" {
			continue // inSkill prefixes names, so this link would not replace the root
		}
		raw, err := inSkill(h)
		if err != nil {
			return err
		}
		for name, body := range map[string][]byte{"skill.tar": raw, "skill.tar.gz": zipped(raw)} {
			got, err := a.uploadSkill(ctx, map[string][]byte{name: body})
			if err := unwanted("a skill with "+h.name+" as "+name, got, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// zipEntry is a file of a zip archive.
type zipEntry struct {
	name, text string
	mode       uint32 // Unix mode; 0 for an ordinary file
}

func zipOf(entries ...zipEntry) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range append([]zipEntry{{"redteam-skill/SKILL.md", skillFile, 0}}, entries...) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, CreatorVersion: 3 << 8, ExternalAttrs: e.mode << 16}
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(f, e.text); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func skillZips(ctx context.Context, a *arena) error {
	const symlink, device, pipe = 0o120777, 0o060666, 0o010666
	for what, entries := range map[string][]zipEntry{
		"dots": {{"redteam-skill/../../../../tmp/redteam-escape", payload, 0}}, "dots of Windows": {{`redteam-skill\..\..\redteam-escape`, payload, 0}}, "an absolute name": {{"/tmp/redteam-escape", payload, 0}},
		"another folder": {{"other/file", payload, 0}}, "a link": {{"redteam-skill/out", "/etc", symlink}}, "a file through a link": {{"redteam-skill/out", "/tmp", symlink}, {"redteam-skill/out/redteam-escape", payload, 0}},
		"a device": {{"redteam-skill/disk", "", device}}, "a pipe": {{"redteam-skill/pipe", "", pipe}}, "a file twice": {{"redteam-skill/a", "1", 0}, {"redteam-skill/a", "2", 0}},
		"SKILL.md twice": {{"redteam-skill/SKILL.md", "---\nname: other\ndescription: x\n---\n", 0}}, "a file that is a folder": {{"redteam-skill/a", "1", 0}, {"redteam-skill/a/b", "2", 0}}, "an empty segment": {{"redteam-skill//a", "1", 0}},
		"a drive": {{`C:\redteam-escape`, payload, 0}}, "NUL": {{"redteam-skill/a\x00b", "1", 0}}, "a line break": {{"redteam-skill/a\nb", "1", 0}},
	} {
		raw, err := zipOf(entries...)
		if err != nil {
			return err
		}
		got, err := a.uploadSkill(ctx, map[string][]byte{"skill.zip": raw})
		if err := unwanted("a zip file with "+what, got, err); err != nil {
			return err
		}
	}
	whole, err := zipOf()
	if err != nil {
		return err
	}
	for what, raw := range map[string][]byte{"its end cut off": whole[:len(whole)-10], "its beginning cut off": whole[10:], "other sizes in its list": bytes.Replace(whole, []byte("PK\x01\x02"), []byte("PK\x01\x03"), 1), "nothing": {}} {
		got, err := a.uploadSkill(ctx, map[string][]byte{"skill.zip": raw})
		if err := unwanted("a zip file with "+what, got, err); err != nil {
			return err
		}
	}
	return nil
}

// bombSize is the unpacked size of a bomb.
const bombSize = 64 * mib

func skillBombs(ctx context.Context, a *arena) error {
	var zeros bytes.Buffer
	z := gzip.NewWriter(&zeros)
	w := tar.NewWriter(z)
	err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "redteam-skill/zeros", Size: bombSize, Mode: 0o644}), copyZeros(w, bombSize), w.Close(), z.Close())
	if err != nil {
		return err
	}
	many := make([]zipEntry, 5_000)
	for i := range many {
		many[i] = zipEntry{fmt.Sprintf("redteam-skill/%d", i), "x", 0}
	}
	manyZip, err := zipOf(many...)
	if err != nil {
		return err
	}
	grown, err := zipOf(zipEntry{"redteam-skill/zeros", strings.Repeat("\x00", 32*mib), 0})
	if err != nil {
		return err
	}
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%[1]d [%s]\n", i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9))
	}
	deep := "metadata: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n"
	for what, files := range map[string]map[string][]byte{
		"zeros in a tar.gz": {"skill.tar.gz": zeros.Bytes()}, "many files": {"skill.zip": manyZip}, "zeros in a zip": {"skill.zip": grown},
		"YAML that grows": {"redteam-skill/SKILL.md": []byte("---\nname: redteam-skill\ndescription: x\n" + laughs + "metadata: {a: *a9}\n---\n")}, "deep YAML": {"redteam-skill/SKILL.md": []byte("---\nname: redteam-skill\ndescription: x\n" + deep + "---\n")},
	} {
		got, err := a.uploadSkill(ctx, files)
		if err := unwanted("a skill with "+what, got, err); err != nil {
			return err
		}
	}
	return a.admin.must(ctx, http.MethodGet, "/healthz", nil, nil)
}

// copyZeros writes size zero bytes.
func copyZeros(w io.Writer, size int) error {
	zeros := make([]byte, mib)
	for range size / mib {
		if _, err := w.Write(zeros); err != nil {
			return err
		}
	}
	return nil
}

func skillNames(ctx context.Context, a *arena) error {
	for _, name := range []string{"..", ".", "../redteam", "a/b", "/abs", "A", "a b", "é", "-", "a\x00b", "", strings.Repeat("a", 65), "structured-planning"} {
		body := []byte("---\nname: " + asJSON(name) + "\ndescription: x\n---\nx\n")
		got, err := a.uploadSkill(ctx, map[string][]byte{strings.ReplaceAll(strings.ReplaceAll(name, "\x00", "%00"), `"`, "") + "/SKILL.md": body})
		if err := unwanted(fmt.Sprintf("a skill named %q", name), got, err); err != nil {
			return err
		}
	}
	for _, path := range []string{"redteam-skill/../x", "../x", "/etc/x", `redteam-skill\..\x`, "redteam-skill/./x", "redteam-skill/a/../../x", "other/x", "x"} {
		got, err := a.uploadSkill(ctx, map[string][]byte{"redteam-skill/SKILL.md": []byte(skillFile), path: []byte(payload)})
		if err := unwanted(fmt.Sprintf("a skill with the file %q", path), got, err); err != nil {
			return err
		}
	}
	return nil
}
