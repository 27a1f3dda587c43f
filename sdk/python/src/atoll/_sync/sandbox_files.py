# Code generated from _async/sandbox_files.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Files of a named sandbox."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from .. import types
from .._body import Content
from .._request import NDJSON
from .place import Place
from .stream import Download, Events

if TYPE_CHECKING:
    import httpx

    from .._kinds import Position

FILES = "/v1/sandboxes/{}/files"
TAR = "application/x-tar"


class SandboxFiles:
    """Files of a sandbox. A path that is not absolute is one below /home/user."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def open(self, path: str) -> Download:
        """Returns a file's bytes, which are read as they come."""
        return self._place.download(FILES, query={"path": path})

    def read(self, path: str) -> bytes:
        """Returns a file's bytes, in memory."""
        return self.open(path).read()

    def read_text(self, path: str) -> str:
        """Returns a file as UTF-8."""
        return self.open(path).text()

    def write(
        self, path: str, content: Content, *, append: bool = False, mode: int | None = None
    ) -> types.SandboxWritten:
        """Writes a file: bytes, text, an open file, or pieces as they come."""
        query = {"path": path, "append": append or None, "mode": None if mode is None else f"{mode:o}"}
        return self._place.upload(
            types.SandboxWritten, "PUT", FILES, content=content, query=query, safe=not append
        )

    def upload(
        self, local: str | os.PathLike[str], path: str, *, mode: int | None = None
    ) -> types.SandboxWritten:
        """Copies a file of this machine into the sandbox."""
        return self.write(path, Path(local), mode=mode)

    def download(self, path: str, local: str | os.PathLike[str]) -> int:
        """Copies a file of the sandbox to this machine, and returns its size."""
        return self.open(path).save(local)

    def stat(self, path: str) -> types.SandboxFile:
        """Describes a file."""
        return self._place.one(types.SandboxFile, "GET", FILES + "/stat", query={"path": path})

    def list(
        self, path: str | None = None, *, depth: int | None = None, limit: int | None = None
    ) -> types.SandboxFiles:
        """Lists a folder, and those below it to a depth."""
        return self._place.one(
            types.SandboxFiles, "GET", FILES + "/list", query={"path": path, "depth": depth, "limit": limit}
        )

    def make_folder(self, path: str) -> types.SandboxFile:
        """Makes a folder, and those above it."""
        return self._place.one(types.SandboxFile, "POST", FILES + "/directories", query={"path": path}, safe=True)

    def move(self, source: str, target: str, *, replace: bool | None = None) -> types.SandboxFile:
        """Gives a file or folder another name."""
        return self._place.one(
            types.SandboxFile, "POST", FILES + "/move", query={"from": source, "to": target, "replace": replace}
        )

    def delete(self, path: str, *, recursive: bool | None = None) -> None:
        """Removes a file, or a folder with recursive."""
        self._place.none("DELETE", FILES, query={"path": path, "recursive": recursive})

    def watch(self, path: str | None = None, *, recursive: bool | None = None) -> Events[types.SandboxChange]:
        """Returns changes as they happen, until it is left. A watch whose connection broke
        raises StreamBroken, as changes may be missing: look at the files, and watch anew."""

        def connect(last: Position | None) -> httpx.Response:
            return self._place.send(
                "GET", FILES + "/watch", query={"path": path, "recursive": recursive}, accept=NDJSON, stream=True
            )

        return Events(types.SandboxChange, connect, resumes=False)

    def pack(self, path: str) -> Download:
        """Returns a file or folder as a tar archive."""
        return self._place.download("/v1/sandboxes/{}/archive", query={"path": path})

    def unpack(self, path: str, archive: Content) -> types.SandboxUnpacked:
        """Unpacks a tar archive; its entry "." becomes path."""
        return self._place.upload(
            types.SandboxUnpacked, "PUT", "/v1/sandboxes/{}/archive", content=archive, query={"path": path}, media=TAR
        )
