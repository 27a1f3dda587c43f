package response

import (
	"encoding/json"

	"github.com/atoll-run/atoll/internal/agent/sandboxtool"
	"github.com/atoll-run/atoll/internal/core/run"
)

func init() {
	for _, tool := range []string{
		sandboxtool.WriteFile, sandboxtool.ReadFile, sandboxtool.EditFile, sandboxtool.Grep, sandboxtool.Glob, sandboxtool.ApplyPatch, sandboxtool.ShareFile,
	} {
		uses[tool] = fileUse
	}
}

// fileUse shows a call of a file tool. What it came to is there once it has ended well.
func fileUse(out *ResponseItem, t *run.ToolUse) error {
	u, err := sandboxtool.ReadUse(t.Output)
	if err != nil {
		return err
	}
	out.Type, out.Error = t.Tool, t.Error
	ended := len(t.Output) > 0 && t.Error == ""
	switch t.Tool {
	case sandboxtool.WriteFile, sandboxtool.ReadFile, sandboxtool.EditFile:
		var in struct {
			Path string `json:"file_path"`
		}
		if err := json.Unmarshal(t.Input, &in); err != nil {
			return err
		}
		out.FilePath, out.Message = in.Path, u.Message
		if t.Tool == sandboxtool.WriteFile {
			out.SizeBytes = u.Size
		}
		if ended && t.Tool == sandboxtool.ReadFile {
			out.Content, out.StartLine, out.TotalLines = &ResponseContent{Text: u.Content}, u.From, u.Lines
		}
	case sandboxtool.Grep, sandboxtool.Glob:
		if ended {
			out.Files, out.Count, out.Truncated = list(u.Files), u.Count, &u.Truncated
		}
	case sandboxtool.ApplyPatch:
		if ended {
			out.Added, out.Modified, out.Deleted = list(u.Added), list(u.Modified), list(u.Deleted)
		}
	case sandboxtool.ShareFile:
		out.FileID, out.FileName, out.SizeBytes = u.FileID, u.Name, u.Size
	}
	return nil
}

// list is a list that is not null.
func list(l []string) *[]string {
	l = append([]string{}, l...)
	return &l
}
