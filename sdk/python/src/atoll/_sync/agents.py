# Code generated from _async/agents.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Agents, and the skills and vaults that they use."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import types
from .._request import given
from .resource import Pager, Resource
from .stream import Download
from .transport import decode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params


Folder = Mapping[str, str | bytes] | bytes


def skill_form(files: Folder, display_name: str | None) -> dict[str, Any]:
    if isinstance(files, Mapping):
        import zipfile

        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        files = packed.getvalue()
    return {"files": {"files[]": ("skill.zip", files, "application/zip")}, "data": given(display_name=display_name)}


class Agents(Resource):
    """Agents, in versions that do not change."""

    def create(self, **agent: Unpack[params.NewAgent]) -> types.Agent:
        """Makes an agent."""
        return self._one(types.Agent, "POST", "/v1/agents", body=agent)

    def list(
        self, *, include_archived: bool | None = None, limit: int | None = None, page: str | None = None
    ) -> Pager[types.Agent]:
        """Lists agents."""
        return self._list(
            types.Agent, "/v1/agents", query={"include_archived": include_archived, "limit": limit, "page": page}
        )

    def get(self, agent: str, *, version: int | None = None) -> types.Agent:
        """Shows an agent by its id or slug, in a version or the current one."""
        if version is not None:
            return self._one(types.Agent, "GET", "/v1/agents/{}/versions/{}", agent, str(version))
        return self._one(types.Agent, "GET", "/v1/agents/{}", agent)

    def update(self, agent: str, **change: Unpack[params.AgentChange]) -> types.Agent:
        """Makes a new version of an agent."""
        return self._one(types.Agent, "PATCH", "/v1/agents/{}", agent, body=change)

    def archive(self, agent: str) -> types.Agent:
        """Ends an agent; sessions with it go on."""
        return self._one(types.Agent, "POST", "/v1/agents/{}/archive", agent)

    def delete(self, agent: str) -> types.DeletedAgent:
        """Deletes an agent with its versions. An agent that has sessions is a conflict."""
        return self._one(types.DeletedAgent, "DELETE", "/v1/agents/{}", agent)

    def copy(self, agent: str, **settings: Unpack[params.AgentCopy]) -> types.Agent:
        """Makes another agent like this one."""
        return self._one(types.Agent, "POST", "/v1/agents/{}/copy", agent, body=settings)

    def versions(self, agent: str, *, limit: int | None = None) -> Pager[types.Agent]:
        """Lists the versions of an agent."""
        return self._list(types.Agent, "/v1/agents/{}/versions", agent, query={"limit": limit})


class Skills(Resource):
    """Folders of instructions and programs that agents use."""

    def create(self, files: Folder, *, display_name: str | None = None) -> types.Skill:
        """Makes a skill of its files by name, or of a zip archive of its folder."""
        return types.Skill(
            decode(self._transport.send("POST", "/v1/skills", form=skill_form(files, display_name)))
        )

    def list(
        self, *, source: str | None = None, include_archived: bool | None = None, limit: int | None = None
    ) -> Pager[types.Skill]:
        """Lists skills."""
        return self._list(
            types.Skill, "/v1/skills", query={"source": source, "include_archived": include_archived, "limit": limit}
        )

    def get(self, skill_id: str) -> types.Skill:
        """Shows a skill."""
        return self._one(types.Skill, "GET", "/v1/skills/{}", skill_id)

    def archive(self, skill_id: str) -> types.Skill:
        """Ends a skill; agents that have it keep it."""
        return self._one(types.Skill, "POST", "/v1/skills/{}/archive", skill_id)

    def delete(self, skill_id: str) -> types.DeletedSkill:
        """Deletes a skill."""
        return self._one(types.DeletedSkill, "DELETE", "/v1/skills/{}", skill_id)

    def create_version(self, skill_id: str, files: Folder) -> types.SkillVersion:
        """Makes a new version of a skill of its files by name, or of a zip archive."""
        form = skill_form(files, None)
        return types.SkillVersion(
            decode(self._transport.send("POST", "/v1/skills/{}/versions", skill_id, form=form))
        )

    def versions(self, skill_id: str, *, limit: int | None = None) -> Pager[types.SkillVersion]:
        """Lists the versions of a skill."""
        return self._list(types.SkillVersion, "/v1/skills/{}/versions", skill_id, query={"limit": limit})

    def version(self, skill_id: str, version: str) -> types.SkillVersion:
        """Shows a version of a skill."""
        return self._one(types.SkillVersion, "GET", "/v1/skills/{}/versions/{}", skill_id, version)

    def delete_version(self, skill_id: str, version: str) -> types.DeletedSkillVersion:
        """Deletes a version of a skill."""
        return self._one(types.DeletedSkillVersion, "DELETE", "/v1/skills/{}/versions/{}", skill_id, version)

    def content(self, skill_id: str, version: str) -> Download:
        """Returns the archive of a version."""
        return self._download("/v1/skills/{}/versions/{}/content", skill_id, version)


class Vaults(Resource):
    """Credentials that sessions use and models never see."""

    def create(self, **vault: Unpack[params.NewVault]) -> types.Vault:
        """Makes a vault."""
        return self._one(types.Vault, "POST", "/v1/vaults", body=vault)

    def list(self, *, include_archived: bool | None = None, limit: int | None = None) -> Pager[types.Vault]:
        """Lists vaults."""
        return self._list(types.Vault, "/v1/vaults", query={"include_archived": include_archived, "limit": limit})

    def get(self, vault_id: str) -> types.Vault:
        """Shows a vault."""
        return self._one(types.Vault, "GET", "/v1/vaults/{}", vault_id)

    def update(self, vault_id: str, **change: Unpack[params.VaultChange]) -> types.Vault:
        """Changes a vault."""
        return self._one(types.Vault, "PATCH", "/v1/vaults/{}", vault_id, body=change)

    def archive(self, vault_id: str) -> types.Vault:
        """Ends a vault, and forgets its credentials."""
        return self._one(types.Vault, "POST", "/v1/vaults/{}/archive", vault_id)

    def delete(self, vault_id: str) -> types.DeletedVault:
        """Deletes a vault."""
        return self._one(types.DeletedVault, "DELETE", "/v1/vaults/{}", vault_id)

    def create_credential(self, vault_id: str, **credential: Unpack[params.NewCredential]) -> types.Credential:
        """Puts a credential into a vault."""
        return self._one(types.Credential, "POST", "/v1/vaults/{}/credentials", vault_id, body=credential)

    def credentials(
        self, vault_id: str, *, include_archived: bool | None = None, limit: int | None = None
    ) -> Pager[types.Credential]:
        """Lists the credentials of a vault, without their secrets."""
        return self._list(
            types.Credential,
            "/v1/vaults/{}/credentials",
            vault_id,
            query={"include_archived": include_archived, "limit": limit},
        )

    def credential(self, vault_id: str, credential_id: str) -> types.Credential:
        """Shows a credential, without its secret."""
        return self._one(types.Credential, "GET", "/v1/vaults/{}/credentials/{}", vault_id, credential_id)

    def update_credential(
        self, vault_id: str, credential_id: str, **change: Unpack[params.CredentialChange]
    ) -> types.Credential:
        """Changes a credential."""
        return self._one(
            types.Credential, "PATCH", "/v1/vaults/{}/credentials/{}", vault_id, credential_id, body=change
        )

    def archive_credential(self, vault_id: str, credential_id: str) -> types.Credential:
        """Ends a credential, and forgets its secret."""
        return self._one(
            types.Credential, "POST", "/v1/vaults/{}/credentials/{}/archive", vault_id, credential_id
        )

    def delete_credential(self, vault_id: str, credential_id: str) -> types.DeletedCredential:
        """Deletes a credential."""
        return self._one(
            types.DeletedCredential, "DELETE", "/v1/vaults/{}/credentials/{}", vault_id, credential_id
        )
