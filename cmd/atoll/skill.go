package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/core/skill"
	sdk "github.com/atoll-run/atoll/sdk/go"
)

func (a *cli) skillCommand() *cobra.Command {
	cmd, r := a.remoteGroup("skill", "Upload, show and delete skills of agents",
		`A skill is a folder with SKILL.md, in the open Agent Skills format, and what it
needs: scripts, references, assets. Agents name it in their skills. These are the
skills of one tenant: the one whose key this is.`,
		`  atoll skill push ./monthly-report
  atoll skill list
  atoll skill show monthly-report --version 1`, devKeyFile, map[string]completer{"SKILL": skillNames})
	cmd.AddCommand(r.skillPush(), r.skillList(), r.skillShow(), r.skillVersions(), r.skillPull(), r.skillArchive(), r.skillDelete())
	return cmd
}

func skillNames(ctx context.Context, c *sdk.Client, _ []string) ([]string, error) {
	all, err := c.Skills(false).All(ctx, maxNames)
	return namesOf(all, err, func(s sdk.Skill) string { return s.Name })
}

func (r *remote) skillPush() *cobra.Command {
	var title string
	cmd := r.command("push DIR", "Upload a folder: as a new skill, or as another version of the one of its name", "  atoll skill push ./monthly-report --display-name 'Monthly report'", cobra.ExactArgs(1),
		func(ctx context.Context, c *sdk.Client, args []string) error {
			b, err := readSkill(args[0])
			if err != nil {
				return err
			}
			packed, err := b.Pack()
			if err != nil {
				return err
			}
			_, err = c.Skill(ctx, b.Head.Name)
			var no *sdk.Error
			switch {
			case errors.As(err, &no) && no.Status == 404:
				made, err := c.CreateSkill(ctx, title, packed)
				if err != nil {
					return err
				}
				return r.showSkill(made)
			case err != nil:
				return err
			case title != "":
				return fmt.Errorf("the skill %s exists: --display-name applies only to a new skill", b.Head.Name)
			}
			made, err := c.AddSkillVersion(ctx, b.Head.Name, packed)
			if err != nil {
				return err
			}
			return r.showSkillVersion(made)
		})
	cmd.Flags().StringVar(&title, "display-name", "", "display name of a new skill (its name)")
	return cmd
}

// readSkill reads the folder of a skill, without what is hidden in it.
func readSkill(dir string) (*skill.Bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var files []skill.File
	left := int64(skill.MaxBytes)
	err = fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(path.Base(name), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", filepath.Join(dir, name))
		}
		if left -= info.Size(); left < 0 {
			return fmt.Errorf("%s is larger than %s", dir, humanBytes(skill.MaxBytes))
		}
		data, err := root.ReadFile(name)
		files = append(files, skill.File{Path: name, Exec: info.Mode()&0o111 != 0, Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return skill.NewBundle(files)
}

func (r *remote) skillList() *cobra.Command {
	var archived bool
	var limit int
	cmd := r.command("list", "List skills, newest first", "", cobra.NoArgs, func(ctx context.Context, c *sdk.Client, _ []string) error {
		all, err := c.Skills(archived).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"SKILL", "ID", "VERSION", "CHANGED", "ARCHIVED", "DESCRIPTION"}, func(s sdk.Skill) []any {
			return []any{s.Name, s.ID, s.LatestVersion, when(s.UpdatedAt), whenOr(s.ArchivedAt, "-"), s.Description}
		})(all)
	})
	cmd.Flags().BoolVar(&archived, "archived", false, "also list archived ones")
	cmd.Flags().IntVar(&limit, "limit", 100, "skills to list at most; 0 for all")
	return cmd
}

func (r *remote) skillShow() *cobra.Command {
	var version string
	cmd := r.command("show SKILL", "Show a skill, or a version of it", "  atoll skill show monthly-report --version latest", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		if version != "" {
			got, err := c.SkillVersion(ctx, args[0], version)
			if err != nil {
				return err
			}
			return r.showSkillVersion(got)
		}
		got, err := c.Skill(ctx, args[0])
		if err != nil {
			return err
		}
		return r.showSkill(got)
	})
	cmd.Flags().StringVar(&version, "version", "", "number or id of a version, or latest")
	return cmd
}

func (r *remote) skillVersions() *cobra.Command {
	var limit int
	cmd := r.command("versions SKILL", "List the versions of a skill, newest first", "", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		all, err := c.SkillVersions(args[0]).All(ctx, limit)
		if err != nil {
			return err
		}
		return listing(&r.printer, []any{"VERSION", "ID", "MADE", "FILES", "DESCRIPTION"}, func(v sdk.SkillVersion) []any {
			return []any{v.Version, v.ID, when(v.CreatedAt), len(v.Files), v.Description}
		})(all)
	})
	cmd.Flags().IntVar(&limit, "limit", 100, "versions to list at most; 0 for all")
	return cmd
}

func (r *remote) skillPull() *cobra.Command {
	var version string
	cmd := r.command("pull SKILL FILE", "Download a version as a zip archive", "  atoll skill pull monthly-report report.zip --version 1", cobra.ExactArgs(2), func(ctx context.Context, c *sdk.Client, args []string) (err error) {
		out, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		defer func() {
			if err = errors.Join(err, out.Close()); err != nil {
				_ = os.Remove(args[1])
			}
		}()
		return c.SkillContent(ctx, args[0], version, out)
	})
	cmd.Flags().StringVar(&version, "version", "latest", "number or id of a version")
	return cmd
}

func (r *remote) skillArchive() *cobra.Command {
	return r.command("archive SKILL…", "Archive skills: agents that have them keep them, and no other gets them", "", cobra.MinimumNArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		var errs []error
		for _, name := range args {
			_, err := c.ArchiveSkill(ctx, name)
			if err == nil {
				err = r.say("archived %s", name)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

func (r *remote) skillDelete() *cobra.Command {
	var version string
	cmd := r.command("delete SKILL", "Delete a skill with all of its versions, or one of them", "  atoll skill delete monthly-report --version 1", cobra.ExactArgs(1), func(ctx context.Context, c *sdk.Client, args []string) error {
		err := c.DeleteSkill
		what := args[0]
		if version != "" {
			what += " " + version
			err = func(ctx context.Context, name string) error { return c.DeleteSkillVersion(ctx, name, version) }
		}
		if err := err(ctx, args[0]); err != nil {
			return err
		}
		return r.say("deleted %s", what)
	})
	cmd.Flags().StringVar(&version, "version", "", "delete only the version with this number or id")
	return cmd
}

func (r *remote) showSkill(s sdk.Skill) error {
	return r.print(s, func(w io.Writer) {
		row(w, "name", s.Name)
		row(w, "id", s.ID)
		row(w, "display name", s.DisplayName)
		row(w, "description", s.Description)
		row(w, "version", s.LatestVersion)
		row(w, "created", when(s.CreatedAt))
		row(w, "changed", when(s.UpdatedAt))
		row(w, "archived", whenOr(s.ArchivedAt, "-"))
	})
}

func (r *remote) showSkillVersion(v sdk.SkillVersion) error {
	return r.print(v, func(w io.Writer) {
		row(w, "name", v.Name)
		row(w, "version", v.Version)
		row(w, "id", v.ID)
		row(w, "description", v.Description)
		row(w, "license", *or(v.License, "-"))
		row(w, "created", when(v.CreatedAt))
		for _, f := range v.Files {
			row(w, "file", fmt.Sprintf("%s (%s)", f.Path, humanBytes(f.Size)))
		}
	})
}
