"""Operations for operators; they need a key with the scope admin."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import types
from .._filters import activity_query
from .._request import LONG_TIMEOUT, NDJSON
from .resource import AsyncPager, AsyncResource
from .storage import AsyncStorage
from .stream import AsyncDownload

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params

TENANT = "/v1/admin/tenants/{}"
AUDIT_FILTERS = (
    "key",
    "agent",
    "session_id",
    "turn_id",
    "source",
    "exit_status",
    "trace_id",
    "executed_code_hash",
    "since",
    "before",
    "limit",
    "page",
)


class AsyncTenants(AsyncResource):
    """Tenants."""

    async def create(self, **tenant: Unpack[params.NewTenant]) -> types.Tenant:
        """Makes a tenant."""
        return await self._one(types.Tenant, "POST", "/v1/admin/tenants", body=tenant)

    def list(self, *, limit: int | None = None, page: str | None = None) -> AsyncPager[types.Tenant]:
        """Lists tenants."""
        return self._list(types.Tenant, "/v1/admin/tenants", query={"limit": limit, "page": page})

    async def get(self, tenant: str) -> types.Tenant:
        """Shows a tenant."""
        return await self._one(types.Tenant, "GET", TENANT, tenant)

    async def update(self, tenant: str, **change: Unpack[params.TenantChange]) -> types.Tenant:
        """Changes a tenant's plan, budget, or state."""
        return await self._one(types.Tenant, "PATCH", TENANT, tenant, body=change)

    async def delete(self, tenant: str) -> types.Tenant:
        """Deletes a tenant with all its data; the server completes the deletion after the answer."""
        return await self._one(types.Tenant, "DELETE", TENANT, tenant)

    async def usage(
        self,
        tenant: str,
        *,
        since: str | None = None,
        before: str | None = None,
        group_by: str | None = None,
        agent: str | None = None,
        session_id: str | None = None,
    ) -> types.Usage:
        """Returns what a tenant used."""
        query = {"since": since, "before": before, "group_by": group_by, "agent": agent, "session_id": session_id}
        return await self._one(types.Usage, "GET", TENANT + "/usage", tenant, query=query)

    def activity(self, tenant: str, **filters: Any) -> AsyncPager[types.Activity]:
        """Lists who ran what in a tenant, newest first."""
        return self._list(types.Activity, TENANT + "/activity", tenant, query=activity_query(filters))

    def policy_events(self, tenant: str, *, limit: int | None = None) -> AsyncPager[types.PolicyEvent]:
        """Lists what was changed of a tenant's rules."""
        return self._list(types.PolicyEvent, TENANT + "/policy-events", tenant, query={"limit": limit})

    async def redeliver(self, tenant: str, trace_id: str) -> types.Redelivery:
        """Sends the webhook message of an execution once more."""
        return await self._one(types.Redelivery, "POST", TENANT + "/executions/{}/webhook", tenant, trace_id)


class AsyncKeys(AsyncResource):
    """Keys of a tenant."""

    async def create(self, tenant: str, **key: Unpack[params.NewKey]) -> types.Key:
        """Makes a key; the answer alone has its secret."""
        return await self._one(types.Key, "POST", TENANT + "/keys", tenant, body=key)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> AsyncPager[types.Key]:
        """Lists keys."""
        return self._list(types.Key, TENANT + "/keys", tenant, query={"limit": limit, "page": page})

    async def get(self, tenant: str, key: str) -> types.Key:
        """Shows a key."""
        return await self._one(types.Key, "GET", TENANT + "/keys/{}", tenant, key)

    async def update(self, tenant: str, key: str, **change: Unpack[params.KeyChange]) -> types.Key:
        """Changes a key."""
        return await self._one(types.Key, "PATCH", TENANT + "/keys/{}", tenant, key, body=change)

    async def revoke(self, tenant: str, key: str) -> types.Key:
        """Ends a key for good."""
        return await self._one(types.Key, "DELETE", TENANT + "/keys/{}", tenant, key)


class AsyncTenantEnvironments(AsyncResource):
    """Environments of a tenant."""

    async def create(self, tenant: str, **environment: Unpack[params.EnvironmentChange]) -> types.Environment:
        """Makes an environment."""
        return await self._one(types.Environment, "POST", TENANT + "/environments", tenant, body=environment)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> AsyncPager[types.Environment]:
        """Lists environments."""
        return self._list(types.Environment, TENANT + "/environments", tenant, query={"limit": limit, "page": page})

    async def get(self, tenant: str, environment: str) -> types.Environment:
        """Shows an environment."""
        return await self._one(types.Environment, "GET", TENANT + "/environments/{}", tenant, environment)

    async def update(
        self, tenant: str, environment: str, **change: Unpack[params.EnvironmentChange]
    ) -> types.Environment:
        """Changes an environment."""
        return await self._one(
            types.Environment, "PATCH", TENANT + "/environments/{}", tenant, environment, body=change
        )

    async def delete(self, tenant: str, environment: str) -> None:
        """Deletes an environment."""
        await self._none("DELETE", TENANT + "/environments/{}", tenant, environment)


class AsyncTemplates(AsyncResource):
    """Templates of a tenant's agents."""

    def list(self, tenant: str, *, limit: int | None = None) -> AsyncPager[types.Template]:
        """Lists templates."""
        return self._list(types.Template, TENANT + "/templates", tenant, query={"limit": limit})

    async def get(self, tenant: str, template: str) -> types.Template:
        """Shows a template."""
        return await self._one(types.Template, "GET", TENANT + "/templates/{}", tenant, template)

    async def put(self, tenant: str, template: str, **change: Unpack[params.TemplateChange]) -> types.Template:
        """Makes or changes a template."""
        return await self._one(types.Template, "PUT", TENANT + "/templates/{}", tenant, template, body=change)

    async def delete(self, tenant: str, template: str) -> None:
        """Deletes a template."""
        await self._none("DELETE", TENANT + "/templates/{}", tenant, template)


class AsyncAudit(AsyncResource):
    """The audit trail."""

    def list(
        self, tenant: str, *, metadata: dict[str, str] | None = None, **filters: Any
    ) -> AsyncPager[types.AuditRow]:
        """Lists rows, the newest first. filters are those of the operation: key, agent,
        session_id, source, exit_status, trace_id, executed_code_hash, since, before, limit."""
        unknown = set(filters) - set(AUDIT_FILTERS)
        if unknown:
            raise TypeError(
                f"no filters of the audit trail: {', '.join(sorted(unknown))}; there are {', '.join(AUDIT_FILTERS)}"
            )
        query = {**filters, **{f"metadata.{name}": value for name, value in (metadata or {}).items()}}
        return self._list(types.AuditRow, TENANT + "/audit", tenant, query=query)

    def export(self, tenant: str, *, since: str | None = None, before: str | None = None) -> AsyncDownload:
        """Returns all rows, one JSON object a line."""
        return self._download(TENANT + "/audit/export", tenant, query={"since": since, "before": before}, accept=NDJSON)

    async def verify(self, tenant: str, **check: Unpack[params.AuditCheck]) -> types.AuditReport:
        """Checks that no row was changed or removed."""
        return await self._one(
            types.AuditReport, "POST", TENANT + "/audit/verify", tenant, body=check, timeout=LONG_TIMEOUT
        )

    def trails(self, *, limit: int | None = None) -> AsyncPager[types.AuditTrail]:
        """Lists the trails that there are."""
        return self._list(types.AuditTrail, "/v1/admin/audit/trails", query={"limit": limit})


class AsyncPlans(AsyncResource):
    """Plans, which bound tenants."""

    def list(self, *, limit: int | None = None) -> AsyncPager[types.Plan]:
        """Lists plans."""
        return self._list(types.Plan, "/v1/admin/plans", query={"limit": limit})

    async def get(self, plan: str) -> types.Plan:
        """Shows a plan."""
        return await self._one(types.Plan, "GET", "/v1/admin/plans/{}", plan)

    async def put(self, plan: str, bounds: params.PlanBounds) -> types.Plan:
        """Makes or changes a plan."""
        return await self._one(types.Plan, "PUT", "/v1/admin/plans/{}", plan, body=bounds)

    async def delete(self, plan: str) -> None:
        """Deletes a plan."""
        await self._none("DELETE", "/v1/admin/plans/{}", plan)


class AsyncAdminModels(AsyncResource):
    """The models that the operator offers."""

    async def create(self, **model: Unpack[params.NewModel]) -> types.Model:
        """Adds a model."""
        return await self._one(types.Model, "POST", "/v1/admin/models", body=model)

    def list(self, *, limit: int | None = None, page: str | None = None) -> AsyncPager[types.Model]:
        """Lists models."""
        return self._list(types.Model, "/v1/admin/models", query={"limit": limit, "page": page})

    async def get(self, model: str) -> types.Model:
        """Shows a model."""
        return await self._one(types.Model, "GET", "/v1/admin/models/{}", model)

    async def update(self, model: str, **change: Unpack[params.ModelChange]) -> types.Model:
        """Changes a model."""
        return await self._one(types.Model, "PATCH", "/v1/admin/models/{}", model, body=change)

    async def delete(self, model: str) -> None:
        """Removes a model."""
        await self._none("DELETE", "/v1/admin/models/{}", model)

    async def test(self, model: str, **trial: Unpack[params.ModelTest]) -> types.ModelTrial:
        """Asks a model something small."""
        return await self._one(
            types.ModelTrial, "POST", "/v1/admin/models/{}/test", model, body=trial, timeout=LONG_TIMEOUT
        )

    def keys(self, tenant: str, *, limit: int | None = None) -> AsyncPager[types.ModelKey]:
        """Lists a tenant's own keys of providers."""
        return self._list(types.ModelKey, TENANT + "/model-keys", tenant, query={"limit": limit})

    async def set_key(self, tenant: str, model: str, **key: Unpack[params.NewModelKey]) -> types.ModelKey:
        """Has a tenant's own key used for a model."""
        return await self._one(types.ModelKey, "PUT", TENANT + "/model-keys/{}", tenant, model, body=key)

    async def delete_key(self, tenant: str, model: str) -> None:
        """Forgets a tenant's own key for a model."""
        await self._none("DELETE", TENANT + "/model-keys/{}", tenant, model)


class AsyncAdmin(AsyncResource):
    """Operations for operators; they need a key with the scope admin."""

    @cached_property
    def tenants(self) -> AsyncTenants:
        """Tenants."""
        return AsyncTenants(self._transport)

    @cached_property
    def keys(self) -> AsyncKeys:
        """Keys of tenants."""
        return AsyncKeys(self._transport)

    @cached_property
    def environments(self) -> AsyncTenantEnvironments:
        """Environments of tenants."""
        return AsyncTenantEnvironments(self._transport)

    @cached_property
    def templates(self) -> AsyncTemplates:
        """Templates of tenants' agents."""
        return AsyncTemplates(self._transport)

    @cached_property
    def storage(self) -> AsyncStorage:
        """Buckets and volumes of tenants."""
        return AsyncStorage(self._transport)

    @cached_property
    def audit(self) -> AsyncAudit:
        """The audit trail."""
        return AsyncAudit(self._transport)

    @cached_property
    def plans(self) -> AsyncPlans:
        """Plans."""
        return AsyncPlans(self._transport)

    @cached_property
    def models(self) -> AsyncAdminModels:
        """Models."""
        return AsyncAdminModels(self._transport)

    async def caps(self) -> types.Caps:
        """Shows what bounds the code of agents."""
        return await self._one(types.Caps, "GET", "/v1/admin/caps")

    async def update_caps(self, **change: Unpack[params.CapsChange]) -> types.Caps:
        """Changes what bounds the code of agents."""
        return await self._one(types.Caps, "PATCH", "/v1/admin/caps", body=change)

    async def orphans(self) -> list[str]:
        """Lists sandboxes of which no record tells."""
        return (await self._one(types.Orphans, "GET", "/v1/admin/sandboxes/orphans")).data

    async def reap_orphans(self) -> list[str]:
        """Removes sandboxes of which no record tells."""
        return (await self._one(types.Orphans, "DELETE", "/v1/admin/sandboxes/orphans")).data
