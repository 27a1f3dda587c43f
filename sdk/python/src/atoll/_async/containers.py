"""Containers: sandboxes that the code interpreter of responses uses."""

from __future__ import annotations

from functools import cached_property
from typing import IO, TYPE_CHECKING

from .. import types
from .._request import LONG_TIMEOUT
from .resource import AsyncPager, AsyncResource
from .stream import AsyncDownload
from .transport import decode

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

CONTAINERS = "/v1/containers"
CONTAINER = "/v1/containers/{}"


class AsyncContainerFiles(AsyncResource):
    """The files of containers."""

    async def create(self, container_id: str, content: bytes | IO[bytes], *, filename: str) -> types.ContainerFile:
        """Puts a file into a container."""
        form = {"files": {"file": (filename, content)}}
        return types.ContainerFile(
            decode(await self._transport.send("POST", CONTAINER + "/files", container_id, form=form))
        )

    def list(
        self, container_id: str, *, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> AsyncPager[types.ContainerFile]:
        """Lists the files of a container."""
        return self._list(
            types.ContainerFile,
            CONTAINER + "/files",
            container_id,
            query={"limit": limit, "order": order, "after": after},
            cursor="after",
        )

    async def get(self, container_id: str, file_id: str) -> types.ContainerFile:
        """Shows a file of a container."""
        return await self._one(types.ContainerFile, "GET", CONTAINER + "/files/{}", container_id, file_id)

    def content(self, container_id: str, file_id: str) -> AsyncDownload:
        """Returns the bytes of a file of a container."""
        return self._download(CONTAINER + "/files/{}/content", container_id, file_id)

    async def delete(self, container_id: str, file_id: str) -> types.DeletedContainerFile:
        """Deletes a file of a container."""
        return await self._one(types.DeletedContainerFile, "DELETE", CONTAINER + "/files/{}", container_id, file_id)


class AsyncContainers(AsyncResource):
    """Sandboxes that the code interpreter of responses uses."""

    @cached_property
    def files(self) -> AsyncContainerFiles:
        """The files of containers."""
        return AsyncContainerFiles(self._transport)

    async def create(self, **container: Unpack[params.NewContainer]) -> types.Container:
        """Makes a container."""
        return await self._one(types.Container, "POST", CONTAINERS, body=container, timeout=LONG_TIMEOUT)

    def list(
        self, *, name: str | None = None, limit: int | None = None, order: str | None = None, after: str | None = None
    ) -> AsyncPager[types.Container]:
        """Lists containers."""
        return self._list(
            types.Container,
            CONTAINERS,
            query={"name": name, "limit": limit, "order": order, "after": after},
            cursor="after",
        )

    async def get(self, container_id: str) -> types.Container:
        """Shows a container."""
        return await self._one(types.Container, "GET", CONTAINER, container_id)

    async def delete(self, container_id: str) -> types.DeletedContainer:
        """Ends a container."""
        return await self._one(types.DeletedContainer, "DELETE", CONTAINER, container_id, timeout=LONG_TIMEOUT)
