# Code generated from _async/files.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Uploaded files, and files of connections and threads by URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from .. import types
from .._request import given
from .resource import Pager, Resource
from .stream import Download
from .transport import decode


class Files(Resource):
    """Files that are uploaded once, and used by their ids."""

    def upload(
        self,
        content: bytes | str | IO[bytes] | os.PathLike[str],
        *,
        filename: str | None = None,
        mime_type: str | None = None,
        expires_in_seconds: int | None = None,
    ) -> types.UploadedFile:
        """Uploads a file: bytes, text, an open file, or the path of one."""
        opened = open(content, "rb") if isinstance(content, os.PathLike) else None
        name = (
            filename
            or (Path(content).name if isinstance(content, os.PathLike) else None)
            or os.path.basename(str(getattr(content, "name", "file")))
        )
        body = opened or (content.encode() if isinstance(content, str) else content)
        part = (name, body, mime_type) if mime_type else (name, body)
        form = {
            "files": {"file": part},
            "data": given(expires_in_seconds=None if expires_in_seconds is None else str(expires_in_seconds)),
        }
        try:
            return types.UploadedFile(decode(self._transport.send("POST", "/v1/files", form=form)))
        finally:
            if opened:
                opened.close()

    def list(
        self, *, limit: int | None = None, page: str | None = None, ids: str | None = None, scope_id: str | None = None
    ) -> Pager[types.UploadedFile]:
        """Lists files, the newest first; scope_id is a session whose shared files are meant."""
        return self._list(
            types.UploadedFile, "/v1/files", query={"limit": limit, "page": page, "ids": ids, "scope_id": scope_id}
        )

    def get(self, file_id: str) -> types.UploadedFile:
        """Shows a file."""
        return self._one(types.UploadedFile, "GET", "/v1/files/{}", file_id)

    def content(self, file_id: str) -> Download:
        """Returns a file's bytes."""
        return self._download("/v1/files/{}/content", file_id)

    def delete(self, file_id: str) -> types.DeletedFile:
        """Deletes a file."""
        return self._one(types.DeletedFile, "DELETE", "/v1/files/{}", file_id)


class Storage(Resource):
    """Files of threads and of volumes, and URLs that read and write them without a key."""

    def list(self, source: str, id: str, path: str | None = None) -> Pager[types.FileEntry]:
        """Lists a folder of a connection ("volume") or thread ("thread")."""
        return self._list(
            types.FileEntry, "/v1/files/list", member="files", body=given(source=source, id=id, path=path)
        )

    def upload_url(
        self, source: str, id: str, path: str, *, content_length: int, content_type: str | None = None
    ) -> types.FileURL:
        """Returns a URL that writes one file without a key."""
        body = given(source=source, id=id, path=path, content_length=content_length, content_type=content_type)
        return self._one(types.FileURL, "POST", "/v1/files/upload_url", body=body, safe=True)

    def download_url(self, source: str, id: str, path: str) -> types.FileURL:
        """Returns a URL that reads one file without a key."""
        return self._one(
            types.FileURL, "POST", "/v1/files/download_url", body={"source": source, "id": id, "path": path}, safe=True
        )
