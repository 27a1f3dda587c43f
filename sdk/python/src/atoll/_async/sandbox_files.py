"""Files of a named sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .. import types
from .._body import AsyncContent
from .._request import NDJSON
from .place import AsyncPlace
from .stream import AsyncDownload, AsyncEvents

if TYPE_CHECKING:
    import httpx

    from .._kinds import Position

FILES = "/v1/sandboxes/{}/files"
TAR = "application/x-tar"


class AsyncSandboxFiles:
    """Files of a sandbox. A path that is not absolute is one below /home/user."""

    def __init__(self, place: AsyncPlace) -> None:
        self._place = place

    def open(self, path: str) -> AsyncDownload:
        """Returns a file's bytes, which are read as they come."""
        return self._place.download(FILES, query={"path": path})

    async def read(self, path: str) -> bytes:
        """Returns a file's bytes, in memory."""
        return await self.open(path).read()

    async def read_text(self, path: str) -> str:
        """Returns a file as UTF-8."""
        return await self.open(path).text()

    async def write(
        self, path: str, content: AsyncContent, *, append: bool = False, mode: int | None = None
    ) -> types.SandboxWritten:
        """Writes a file: bytes, text, an open file, or pieces as they come."""
        query = {"path": path, "append": append or None, "mode": None if mode is None else f"{mode:o}"}
        return await self._place.upload(
            types.SandboxWritten, "PUT", FILES, content=content, query=query, safe=not append
        )

    async def upload(
        self, local: str | os.PathLike[str], path: str, *, mode: int | None = None
    ) -> types.SandboxWritten:
        """Copies a file of this machine into the sandbox."""
        return await self.write(path, Path(local), mode=mode)

    async def download(self, path: str, local: str | os.PathLike[str]) -> int:
        """Copies a file of the sandbox to this machine, and returns its size."""
        return await self.open(path).save(local)

    async def stat(self, path: str) -> types.SandboxFile:
        """Describes a file."""
        return await self._place.one(types.SandboxFile, "GET", FILES + "/stat", query={"path": path})

    async def list(
        self, path: str | None = None, *, depth: int | None = None, limit: int | None = None
    ) -> types.SandboxFiles:
        """Lists a folder, and those below it to a depth."""
        return await self._place.one(
            types.SandboxFiles, "GET", FILES + "/list", query={"path": path, "depth": depth, "limit": limit}
        )

    async def make_folder(self, path: str) -> types.SandboxFile:
        """Makes a folder, and those above it."""
        return await self._place.one(types.SandboxFile, "POST", FILES + "/directories", query={"path": path}, safe=True)

    async def move(self, source: str, target: str, *, replace: bool | None = None) -> types.SandboxFile:
        """Gives a file or folder another name."""
        return await self._place.one(
            types.SandboxFile, "POST", FILES + "/move", query={"from": source, "to": target, "replace": replace}
        )

    async def delete(self, path: str, *, recursive: bool | None = None) -> None:
        """Removes a file, or a folder with recursive."""
        await self._place.none("DELETE", FILES, query={"path": path, "recursive": recursive})

    def watch(self, path: str | None = None, *, recursive: bool | None = None) -> AsyncEvents[types.SandboxChange]:
        """Returns changes as they happen, until it is left. A watch whose connection broke
        raises StreamBroken, as changes may be missing: look at the files, and watch anew."""

        async def connect(last: Position | None) -> httpx.Response:
            return await self._place.send(
                "GET", FILES + "/watch", query={"path": path, "recursive": recursive}, accept=NDJSON, stream=True
            )

        return AsyncEvents(types.SandboxChange, connect, resumes=False)

    def pack(self, path: str) -> AsyncDownload:
        """Returns a file or folder as a tar archive."""
        return self._place.download("/v1/sandboxes/{}/archive", query={"path": path})

    async def unpack(self, path: str, archive: AsyncContent) -> types.SandboxUnpacked:
        """Unpacks a tar archive; its entry "." becomes path."""
        return await self._place.upload(
            types.SandboxUnpacked, "PUT", "/v1/sandboxes/{}/archive", content=archive, query={"path": path}, media=TAR
        )
