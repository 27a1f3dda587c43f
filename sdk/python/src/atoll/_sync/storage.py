# Code generated from _async/storage.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Storage: a tenant's connections, and who is granted them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import types
from .resource import Pager, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

CONNECTIONS = "/v1/admin/tenants/{}/connections"
CONNECTION = CONNECTIONS + "/{}"


class Storage(Resource):
    """Buckets and volumes of a tenant, for keys with the scope admin."""

    def create(self, tenant: str, **connection: Unpack[params.NewConnection]) -> types.Connection:
        """Makes a connection, once its bucket has answered."""
        return self._one(types.Connection, "POST", CONNECTIONS, tenant, body=connection)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> Pager[types.Connection]:
        """Lists connections."""
        return self._list(types.Connection, CONNECTIONS, tenant, query={"limit": limit, "page": page})

    def get(self, tenant: str, connection: str) -> types.Connection:
        """Shows a connection, without its credentials."""
        return self._one(types.Connection, "GET", CONNECTION, tenant, connection)

    def update(self, tenant: str, connection: str, **change: Unpack[params.ConnectionChange]) -> types.Connection:
        """Changes a connection."""
        return self._one(types.Connection, "PATCH", CONNECTION, tenant, connection, body=change)

    def delete(self, tenant: str, connection: str) -> None:
        """Removes a connection, and nothing that is stored."""
        self._none("DELETE", CONNECTION, tenant, connection)

    def grant(self, tenant: str, connection: str, **grant: Unpack[params.NewGrant]) -> types.Grant:
        """Grants a connection to an environment or a key."""
        return self._one(types.Grant, "POST", CONNECTION + "/grants", tenant, connection, body=grant)

    def grants(self, tenant: str, connection: str, *, limit: int | None = None) -> Pager[types.Grant]:
        """Lists who is granted a connection."""
        return self._list(types.Grant, CONNECTION + "/grants", tenant, connection, query={"limit": limit})

    def revoke(self, tenant: str, connection: str, grant: str) -> None:
        """Takes a grant back."""
        self._none("DELETE", CONNECTION + "/grants/{}", tenant, connection, grant)
