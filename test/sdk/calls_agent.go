package sdk

import (
	"archive/zip"
	"bytes"
	"context"
	"io"

	sdk "github.com/atoll-run/atoll/sdk/go"
)

// all takes the size of a page, which this library sets itself: it reads all items.
func all(a *args) int {
	a.number("limit")
	return 0
}

// skill is a zip archive of a skill's folder.
func (a *args) skill() ([]byte, error) {
	files, _ := a.take("skill_files")
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range files.(map[string]any) {
		to, err := w.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(to, text.(string)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

var agentCalls = map[string]call{
	"responses.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateResponse(ctx, body[sdk.CreateResponse](a))
	},
	"responses.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Response(ctx, a.text("response_id"))
	},
	"responses.cancel": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CancelResponse(ctx, a.text("response_id"))
	},
	"responses.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteResponse(ctx, a.text("response_id"))
	},
	"responses.inputs": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ResponseInputs(a.text("response_id"), a.query("order", "limit")).All(ctx, 0))
	},
	"responses.files": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ResponseFiles(a.text("response_id")).All(ctx, 0))
	},
	"responses.file": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		p0, p1 := a.text("response_id"), a.text("file_id")
		return download(func(w io.Writer) error { return c.ResponseFile(ctx, p0, p1, w) })
	},
	"agents.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateAgent(ctx, body[sdk.NewAgent](a))
	},
	"agents.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Agents(a.flag("include_archived")).All(ctx, all(a)))
	},
	"agents.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Agent(ctx, a.text("agent"))
	},
	"agents.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeAgent(ctx, a.text("agent"), body[sdk.AgentChange](a))
	},
	"agents.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteAgent(ctx, a.text("agent"))
	},
	"agents.archive": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ArchiveAgent(ctx, a.text("agent"))
	},
	"agents.copy": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CopyAgent(ctx, a.text("agent"), body[sdk.AgentCopy](a))
	},
	"agents.versions": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.AgentVersions(a.text("agent")).All(ctx, all(a)))
	},
	"agents.version": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.AgentVersion(ctx, a.text("agent"), a.number("version"))
	},
	"sessions.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateSession(ctx, body[sdk.NewSession](a))
	},
	"sessions.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Sessions(a.text("agent_id"), a.flag("include_archived")).All(ctx, all(a)))
	},
	"sessions.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Session(ctx, a.text("session_id"))
	},
	"sessions.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeSession(ctx, a.text("session_id"), body[sdk.SessionChange](a))
	},
	"sessions.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteSession(ctx, a.text("session_id"))
	},
	"sessions.archive": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ArchiveSession(ctx, a.text("session_id"))
	},
	"sessions.context": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SessionContext(ctx, a.text("session_id"))
	},
	"sessions.interrupt": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.InterruptSession(ctx, a.text("session_id"))
	},
	"sessions.send": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SendSession(ctx, a.text("session_id"), body[sdk.NewSessionEvent](a))
	},
	"sessions.start": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.StartSession(ctx, a.text("session_id"), body[sdk.NewSessionEvent](a))
	},
	"sessions.events": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.SessionEvents(a.text("session_id"), a.query("types", "order", "limit")).All(ctx, 0))
	},
	"sessions.files": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.SessionFiles(a.text("session_id")).All(ctx, 0))
	},
	"sessions.file": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		p0, p1 := a.text("session_id"), a.text("file_id")
		return download(func(w io.Writer) error { return c.SessionFile(ctx, p0, p1, w) })
	},
	"sessions.threads": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.SessionThreads(a.text("session_id")).All(ctx, all(a)))
	},
	"sessions.thread": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SessionThread(ctx, a.text("session_id"), a.text("thread_id"))
	},
	"sessions.thread_events": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ThreadEvents(a.text("session_id"), a.text("thread_id"), a.query("types", "order", "limit")).All(ctx, 0))
	},
	"skills.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		archive, err := a.skill()
		if err != nil {
			return nil, err
		}
		return c.CreateSkill(ctx, a.text("display_name"), archive)
	},
	"skills.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Skills(a.flag("include_archived")).All(ctx, all(a)))
	},
	"skills.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Skill(ctx, a.text("skill_id"))
	},
	"skills.archive": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ArchiveSkill(ctx, a.text("skill_id"))
	},
	"skills.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteSkill(ctx, a.text("skill_id"))
	},
	"skills.versions.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		archive, err := a.skill()
		if err != nil {
			return nil, err
		}
		return c.AddSkillVersion(ctx, a.text("skill_id"), archive)
	},
	"skills.versions.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.SkillVersions(a.text("skill_id")).All(ctx, all(a)))
	},
	"skills.versions.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.SkillVersion(ctx, a.text("skill_id"), a.text("version"))
	},
	"skills.versions.content": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		p0, p1 := a.text("skill_id"), a.text("version")
		return download(func(w io.Writer) error { return c.SkillContent(ctx, p0, p1, w) })
	},
	"skills.versions.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteSkillVersion(ctx, a.text("skill_id"), a.text("version"))
	},
	"vaults.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateVault(ctx, body[sdk.NewVault](a))
	},
	"vaults.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Vaults(a.flag("include_archived")).All(ctx, all(a)))
	},
	"vaults.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Vault(ctx, a.text("vault_id"))
	},
	"vaults.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeVault(ctx, a.text("vault_id"), body[sdk.VaultChange](a))
	},
	"vaults.archive": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ArchiveVault(ctx, a.text("vault_id"))
	},
	"vaults.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteVault(ctx, a.text("vault_id"))
	},
	"vaults.credentials.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.AddVaultCredential(ctx, a.text("vault_id"), body[sdk.NewCredential](a))
	},
	"vaults.credentials.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.VaultCredentials(a.text("vault_id"), a.flag("include_archived")).All(ctx, all(a)))
	},
	"vaults.credentials.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.VaultCredential(ctx, a.text("vault_id"), a.text("credential_id"))
	},
	"vaults.credentials.change": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ChangeVaultCredential(ctx, a.text("vault_id"), a.text("credential_id"), body[sdk.CredentialChange](a))
	},
	"vaults.credentials.archive": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ArchiveVaultCredential(ctx, a.text("vault_id"), a.text("credential_id"))
	},
	"vaults.credentials.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteVaultCredential(ctx, a.text("vault_id"), a.text("credential_id"))
	},
	"containers.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.CreateContainer(ctx, body[sdk.NewContainer](a))
	},
	"containers.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.Containers(a.query("name", "order", "limit")).All(ctx, 0))
	},
	"containers.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.Container(ctx, a.text("container_id"))
	},
	"containers.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.DeleteContainer(ctx, a.text("container_id"))
	},
	"containers.files.create": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ContainerFiles(a.text("container_id")).Create(ctx, a.text("filename"), a.content())
	},
	"containers.files.list": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return data(c.ContainerFiles(a.text("container_id")).List().All(ctx, all(a)))
	},
	"containers.files.get": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return c.ContainerFiles(a.text("container_id")).Get(ctx, a.text("file_id"))
	},
	"containers.files.content": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		p0, p1 := a.text("container_id"), a.text("file_id")
		return download(func(w io.Writer) error { return c.ContainerFiles(p0).Content(ctx, p1, w) })
	},
	"containers.files.delete": func(ctx context.Context, c *sdk.Client, a *args) (any, error) {
		return nil, c.ContainerFiles(a.text("container_id")).Delete(ctx, a.text("file_id"))
	},
}
