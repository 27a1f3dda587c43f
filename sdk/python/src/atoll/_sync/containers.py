# Code generated from _async/containers.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Containers: sandboxes that the code interpreter of responses uses."""

from __future__ import annotations

from functools import cached_property
from typing import IO, TYPE_CHECKING

from .. import types
from .._request import LONG_TIMEOUT
from .resource import Pager, Resource
from .stream import Download
from .transport import decode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

CONTAINERS = "/v1/containers"
CONTAINER = "/v1/containers/{}"


class ContainerFiles(Resource):
    """The files of containers."""

    def create(self, container_id: str, content: bytes | IO[bytes], *, filename: str) -> types.ContainerFile:
        """Puts a file into a container."""
        form = {"files": {"file": (filename, content)}}
        return types.ContainerFile(
            decode(self._transport.send("POST", CONTAINER + "/files", container_id, form=form))
        )

    def list(
        self, container_id: str, *, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> Pager[types.ContainerFile]:
        """Lists the files of a container."""
        return self._list(
            types.ContainerFile,
            CONTAINER + "/files",
            container_id,
            query={"limit": limit, "order": order, "after": after},
            cursor="after",
        )

    def get(self, container_id: str, file_id: str) -> types.ContainerFile:
        """Shows a file of a container."""
        return self._one(types.ContainerFile, "GET", CONTAINER + "/files/{}", container_id, file_id)

    def content(self, container_id: str, file_id: str) -> Download:
        """Returns the bytes of a file of a container."""
        return self._download(CONTAINER + "/files/{}/content", container_id, file_id)

    def delete(self, container_id: str, file_id: str) -> types.DeletedContainerFile:
        """Deletes a file of a container."""
        return self._one(types.DeletedContainerFile, "DELETE", CONTAINER + "/files/{}", container_id, file_id)


class Containers(Resource):
    """Sandboxes that the code interpreter of responses uses."""

    @cached_property
    def files(self) -> ContainerFiles:
        """The files of containers."""
        return ContainerFiles(self._transport)

    def create(self, **container: Unpack[params.NewContainer]) -> types.Container:
        """Makes a container."""
        return self._one(types.Container, "POST", CONTAINERS, body=container, timeout=LONG_TIMEOUT)

    def list(
        self, *, name: str | None = None, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> Pager[types.Container]:
        """Lists containers."""
        return self._list(
            types.Container,
            CONTAINERS,
            query={"name": name, "limit": limit, "order": order, "after": after},
            cursor="after",
        )

    def get(self, container_id: str) -> types.Container:
        """Shows a container."""
        return self._one(types.Container, "GET", CONTAINER, container_id)

    def delete(self, container_id: str) -> types.DeletedContainer:
        """Ends a container."""
        return self._one(types.DeletedContainer, "DELETE", CONTAINER, container_id, timeout=LONG_TIMEOUT)
