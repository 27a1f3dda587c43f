# Code generated from _async/threads.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Threads: home directories that outlive their executions."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

from .. import types
from .._body import Content
from .._request import given
from .resource import Pager, Resource
from .stream import Download

THREAD = "/v1/threads/{}"
FILE = "/v1/threads/{}/files/{/}"
TAR = "application/x-tar"


class ThreadFiles(Resource):
    """The files of threads."""

    def list(self, thread_id: str, path: str | None = None) -> Pager[types.FileEntry]:
        """Lists a folder of a thread."""
        return self._list(types.FileEntry, THREAD + "/files", thread_id, query={"path": path}, member="files")

    def read(self, thread_id: str, path: str) -> Download:
        """Returns a file of a thread."""
        return self._download(FILE, thread_id, path)

    def write(self, thread_id: str, path: str, content: Content) -> types.FileEntry:
        """Writes a file of a thread: bytes, text, an open file, or pieces as they come."""
        return self._upload(types.FileEntry, "PUT", FILE, thread_id, path, content=content)

    def delete(self, thread_id: str, path: str) -> None:
        """Deletes a file or folder of a thread."""
        self._none("DELETE", FILE, thread_id, path)

    def sign(
        self, thread_id: str, path: str, *, method: str = "GET", expires_in: int | None = None
    ) -> types.SignedURL:
        """Returns a URL that reads or writes one file without a key."""
        return self._one(
            types.SignedURL,
            "POST",
            THREAD + "/signed_urls",
            thread_id,
            body=given(path=path, method=method, expires_in=expires_in),
        )


class Threads(Resource):
    """Home directories that outlive their executions."""

    @cached_property
    def files(self) -> ThreadFiles:
        """The files of threads."""
        return ThreadFiles(self._transport)

    def list(
        self, *, prefix: str | None = None, limit: int | None = None, page: str | None = None
    ) -> Pager[types.Thread]:
        """Lists threads."""
        return self._list(types.Thread, "/v1/threads", query={"prefix": prefix, "limit": limit, "page": page})

    def get(self, thread_id: str) -> types.Thread:
        """Shows a thread."""
        return self._one(types.Thread, "GET", THREAD, thread_id)

    def update(self, thread_id: str, *, expires_at: datetime | str | None) -> types.Thread:
        """Says when a thread is deleted; None for the server's rule."""
        at = expires_at.isoformat() if isinstance(expires_at, datetime) else expires_at
        return self._one(types.Thread, "PATCH", THREAD, thread_id, body={"expires_at": at})

    def delete(self, thread_id: str) -> None:
        """Deletes a thread with its files."""
        self._none("DELETE", THREAD, thread_id)

    def export(self, thread_id: str) -> Download:
        """Returns all of a thread as a tar archive."""
        return self._download(THREAD + "/archive", thread_id)

    def import_(self, thread_id: str, archive: Content) -> types.Thread:
        """Makes a thread what a tar archive has."""
        return self._upload(types.Thread, "PUT", THREAD + "/archive", thread_id, content=archive, media=TAR)
