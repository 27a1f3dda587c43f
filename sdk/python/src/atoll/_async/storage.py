"""Storage: a tenant's connections, and who is granted them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import types
from .resource import AsyncPager, AsyncResource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

CONNECTIONS = "/v1/admin/tenants/{}/connections"
CONNECTION = CONNECTIONS + "/{}"


class AsyncStorage(AsyncResource):
    """Buckets and volumes of a tenant, for keys with the scope admin."""

    async def create(self, tenant: str, **connection: Unpack[params.NewConnection]) -> types.Connection:
        """Makes a connection, once its bucket has answered."""
        return await self._one(types.Connection, "POST", CONNECTIONS, tenant, body=connection)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> AsyncPager[types.Connection]:
        """Lists connections."""
        return self._list(types.Connection, CONNECTIONS, tenant, query={"limit": limit, "page": page})

    async def get(self, tenant: str, connection: str) -> types.Connection:
        """Shows a connection, without its credentials."""
        return await self._one(types.Connection, "GET", CONNECTION, tenant, connection)

    async def update(self, tenant: str, connection: str, **change: Unpack[params.ConnectionChange]) -> types.Connection:
        """Changes a connection."""
        return await self._one(types.Connection, "PATCH", CONNECTION, tenant, connection, body=change)

    async def delete(self, tenant: str, connection: str) -> None:
        """Removes a connection, and nothing that is stored."""
        await self._none("DELETE", CONNECTION, tenant, connection)

    async def grant(self, tenant: str, connection: str, **grant: Unpack[params.NewGrant]) -> types.Grant:
        """Grants a connection to an environment or a key."""
        return await self._one(types.Grant, "POST", CONNECTION + "/grants", tenant, connection, body=grant)

    def grants(self, tenant: str, connection: str, *, limit: int | None = None) -> AsyncPager[types.Grant]:
        """Lists who is granted a connection."""
        return self._list(types.Grant, CONNECTION + "/grants", tenant, connection, query={"limit": limit})

    async def revoke(self, tenant: str, connection: str, grant: str) -> None:
        """Takes a grant back."""
        await self._none("DELETE", CONNECTION + "/grants/{}", tenant, connection, grant)
