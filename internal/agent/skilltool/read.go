package skilltool

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/skill"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// maxRead bounds the bytes of a file that the model is given.
const maxRead = 64 << 10

type readInput struct {
	Skill *string `json:"skill" required:"true" empty:"false" doc:"The name of a skill."`
	Path  *string `json:"path,omitzero" doc:"A file of its folder, such as references/forms.md; its instructions if omitted."`
}

var readTool = newTool("", skill.ReadTool, "Reads the instructions of a skill, or a text file of its folder. Read the instructions before you do what the skill is for.",
	func(*readInput) error { return nil }, func(ctx context.Context, s *Skills, c *loop.Call, in *readInput) (*loop.Outcome, error) {
		of := c.Request.Skill(*in.Skill)
		if of == nil || of.Version == "" {
			return said(fmt.Sprintf("You have no skill %q with a folder.", *in.Skill), true), nil
		}
		b, err := s.Folders.Content(ctx, c.Run.Tenant, skill.VersionID(of.Version))
		if fault.KindOf(err) == fault.NotFound {
			return said("The skill was deleted.", true), nil
		}
		if err != nil {
			return nil, err
		}
		name := skill.Main
		if in.Path != nil && *in.Path != "" {
			name = strings.TrimPrefix(strings.TrimPrefix(*in.Path, skill.Dir+"/"+b.Head.Name+"/"), "./")
		}
		i := slices.IndexFunc(b.Files, func(f skill.File) bool { return f.Path == name })
		if i < 0 {
			return said(fmt.Sprintf("The skill has no file %q. It has: %s", wire.Clip(name, 200), listing(b)), true), nil
		}
		text, err := content(b, &b.Files[i])
		if err != nil {
			return said(err.Error(), true), nil
		}
		return said(text, false), nil
	})

// content is a file as the model reads it.
func content(b *skill.Bundle, f *skill.File) (string, error) {
	if f.Path == skill.Main {
		_, body, err := skill.ParseMain(f.Data)
		if len(b.Files) > 1 {
			body += fmt.Sprintf("\n\nThe skill's folder is %s/%s in the sandbox. It has: %s\n", skill.Dir, b.Head.Name, listing(b))
		}
		return cut(body), err
	}
	if !utf8.Valid(f.Data) || bytes.IndexByte(f.Data, 0) >= 0 {
		return "", fmt.Errorf("%s is not text: use it in the sandbox, at %s/%s/%s", f.Path, skill.Dir, b.Head.Name, f.Path)
	}
	return cut(string(f.Data)), nil
}

func cut(text string) string {
	if len(text) <= maxRead {
		return text
	}
	return wire.Clip(text, maxRead) + "\n[cut; all of it is in the sandbox]"
}

// listing names the files of a skill.
func listing(b *skill.Bundle) string {
	const most = 100
	var names []string
	for i, f := range b.Files {
		if i == most {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", len(b.Files)-most)
		}
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}
