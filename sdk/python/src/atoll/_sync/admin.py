# Code generated from _async/admin.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Operations for operators; they need a key with the scope admin."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import types
from .._filters import activity_query
from .._request import LONG_TIMEOUT, NDJSON
from .resource import Pager, Resource
from .storage import Storage
from .stream import Download

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


class Tenants(Resource):
    """Tenants."""

    def create(self, **tenant: Unpack[params.NewTenant]) -> types.Tenant:
        """Makes a tenant."""
        return self._one(types.Tenant, "POST", "/v1/admin/tenants", body=tenant)

    def list(self, *, limit: int | None = None, page: str | None = None) -> Pager[types.Tenant]:
        """Lists tenants."""
        return self._list(types.Tenant, "/v1/admin/tenants", query={"limit": limit, "page": page})

    def get(self, tenant: str) -> types.Tenant:
        """Shows a tenant."""
        return self._one(types.Tenant, "GET", TENANT, tenant)

    def update(self, tenant: str, **change: Unpack[params.TenantChange]) -> types.Tenant:
        """Changes a tenant's plan, budget, or state."""
        return self._one(types.Tenant, "PATCH", TENANT, tenant, body=change)

    def delete(self, tenant: str) -> types.Tenant:
        """Deletes a tenant with all its data; the server completes the deletion after the answer."""
        return self._one(types.Tenant, "DELETE", TENANT, tenant)

    def usage(
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
        return self._one(types.Usage, "GET", TENANT + "/usage", tenant, query=query)

    def activity(self, tenant: str, **filters: Any) -> Pager[types.Activity]:
        """Lists who ran what in a tenant, newest first."""
        return self._list(types.Activity, TENANT + "/activity", tenant, query=activity_query(filters))

    def policy_events(self, tenant: str, *, limit: int | None = None) -> Pager[types.PolicyEvent]:
        """Lists what was changed of a tenant's rules."""
        return self._list(types.PolicyEvent, TENANT + "/policy-events", tenant, query={"limit": limit})

    def redeliver(self, tenant: str, trace_id: str) -> types.Redelivery:
        """Sends the webhook message of an execution once more."""
        return self._one(types.Redelivery, "POST", TENANT + "/executions/{}/webhook", tenant, trace_id)


class Keys(Resource):
    """Keys of a tenant."""

    def create(self, tenant: str, **key: Unpack[params.NewKey]) -> types.Key:
        """Makes a key; the answer alone has its secret."""
        return self._one(types.Key, "POST", TENANT + "/keys", tenant, body=key)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> Pager[types.Key]:
        """Lists keys."""
        return self._list(types.Key, TENANT + "/keys", tenant, query={"limit": limit, "page": page})

    def get(self, tenant: str, key: str) -> types.Key:
        """Shows a key."""
        return self._one(types.Key, "GET", TENANT + "/keys/{}", tenant, key)

    def update(self, tenant: str, key: str, **change: Unpack[params.KeyChange]) -> types.Key:
        """Changes a key."""
        return self._one(types.Key, "PATCH", TENANT + "/keys/{}", tenant, key, body=change)

    def revoke(self, tenant: str, key: str) -> types.Key:
        """Ends a key for good."""
        return self._one(types.Key, "DELETE", TENANT + "/keys/{}", tenant, key)


class TenantEnvironments(Resource):
    """Environments of a tenant."""

    def create(self, tenant: str, **environment: Unpack[params.EnvironmentChange]) -> types.Environment:
        """Makes an environment."""
        return self._one(types.Environment, "POST", TENANT + "/environments", tenant, body=environment)

    def list(self, tenant: str, *, limit: int | None = None, page: str | None = None) -> Pager[types.Environment]:
        """Lists environments."""
        return self._list(types.Environment, TENANT + "/environments", tenant, query={"limit": limit, "page": page})

    def get(self, tenant: str, environment: str) -> types.Environment:
        """Shows an environment."""
        return self._one(types.Environment, "GET", TENANT + "/environments/{}", tenant, environment)

    def update(
        self, tenant: str, environment: str, **change: Unpack[params.EnvironmentChange]
    ) -> types.Environment:
        """Changes an environment."""
        return self._one(
            types.Environment, "PATCH", TENANT + "/environments/{}", tenant, environment, body=change
        )

    def delete(self, tenant: str, environment: str) -> None:
        """Deletes an environment."""
        self._none("DELETE", TENANT + "/environments/{}", tenant, environment)


class Templates(Resource):
    """Templates of a tenant's agents."""

    def list(self, tenant: str, *, limit: int | None = None) -> Pager[types.Template]:
        """Lists templates."""
        return self._list(types.Template, TENANT + "/templates", tenant, query={"limit": limit})

    def get(self, tenant: str, template: str) -> types.Template:
        """Shows a template."""
        return self._one(types.Template, "GET", TENANT + "/templates/{}", tenant, template)

    def put(self, tenant: str, template: str, **change: Unpack[params.TemplateChange]) -> types.Template:
        """Makes or changes a template."""
        return self._one(types.Template, "PUT", TENANT + "/templates/{}", tenant, template, body=change)

    def delete(self, tenant: str, template: str) -> None:
        """Deletes a template."""
        self._none("DELETE", TENANT + "/templates/{}", tenant, template)


class Audit(Resource):
    """The audit trail."""

    def list(
        self, tenant: str, *, metadata: dict[str, str] | None = None, **filters: Any
    ) -> Pager[types.AuditRow]:
        """Lists rows, the newest first. filters are those of the operation: key, agent,
        session_id, source, exit_status, trace_id, executed_code_hash, since, before, limit."""
        unknown = set(filters) - set(AUDIT_FILTERS)
        if unknown:
            raise TypeError(
                f"no filters of the audit trail: {', '.join(sorted(unknown))}; there are {', '.join(AUDIT_FILTERS)}"
            )
        query = {**filters, **{f"metadata.{name}": value for name, value in (metadata or {}).items()}}
        return self._list(types.AuditRow, TENANT + "/audit", tenant, query=query)

    def export(self, tenant: str, *, since: str | None = None, before: str | None = None) -> Download:
        """Returns all rows, one JSON object a line."""
        return self._download(TENANT + "/audit/export", tenant, query={"since": since, "before": before}, accept=NDJSON)

    def verify(self, tenant: str, **check: Unpack[params.AuditCheck]) -> types.AuditReport:
        """Checks that no row was changed or removed."""
        return self._one(
            types.AuditReport, "POST", TENANT + "/audit/verify", tenant, body=check, timeout=LONG_TIMEOUT
        )

    def trails(self, *, limit: int | None = None) -> Pager[types.AuditTrail]:
        """Lists the trails that there are."""
        return self._list(types.AuditTrail, "/v1/admin/audit/trails", query={"limit": limit})


class Plans(Resource):
    """Plans, which bound tenants."""

    def list(self, *, limit: int | None = None) -> Pager[types.Plan]:
        """Lists plans."""
        return self._list(types.Plan, "/v1/admin/plans", query={"limit": limit})

    def get(self, plan: str) -> types.Plan:
        """Shows a plan."""
        return self._one(types.Plan, "GET", "/v1/admin/plans/{}", plan)

    def put(self, plan: str, bounds: params.PlanBounds) -> types.Plan:
        """Makes or changes a plan."""
        return self._one(types.Plan, "PUT", "/v1/admin/plans/{}", plan, body=bounds)

    def delete(self, plan: str) -> None:
        """Deletes a plan."""
        self._none("DELETE", "/v1/admin/plans/{}", plan)


class AdminModels(Resource):
    """The models that the operator offers."""

    def create(self, **model: Unpack[params.NewModel]) -> types.Model:
        """Adds a model."""
        return self._one(types.Model, "POST", "/v1/admin/models", body=model)

    def list(self, *, limit: int | None = None, page: str | None = None) -> Pager[types.Model]:
        """Lists models."""
        return self._list(types.Model, "/v1/admin/models", query={"limit": limit, "page": page})

    def get(self, model: str) -> types.Model:
        """Shows a model."""
        return self._one(types.Model, "GET", "/v1/admin/models/{}", model)

    def update(self, model: str, **change: Unpack[params.ModelChange]) -> types.Model:
        """Changes a model."""
        return self._one(types.Model, "PATCH", "/v1/admin/models/{}", model, body=change)

    def delete(self, model: str) -> None:
        """Removes a model."""
        self._none("DELETE", "/v1/admin/models/{}", model)

    def test(self, model: str, **trial: Unpack[params.ModelTest]) -> types.ModelTrial:
        """Asks a model something small."""
        return self._one(
            types.ModelTrial, "POST", "/v1/admin/models/{}/test", model, body=trial, timeout=LONG_TIMEOUT
        )

    def keys(self, tenant: str, *, limit: int | None = None) -> Pager[types.ModelKey]:
        """Lists a tenant's own keys of providers."""
        return self._list(types.ModelKey, TENANT + "/model-keys", tenant, query={"limit": limit})

    def set_key(self, tenant: str, model: str, **key: Unpack[params.NewModelKey]) -> types.ModelKey:
        """Has a tenant's own key used for a model."""
        return self._one(types.ModelKey, "PUT", TENANT + "/model-keys/{}", tenant, model, body=key)

    def delete_key(self, tenant: str, model: str) -> None:
        """Forgets a tenant's own key for a model."""
        self._none("DELETE", TENANT + "/model-keys/{}", tenant, model)


class Admin(Resource):
    """Operations for operators; they need a key with the scope admin."""

    @cached_property
    def tenants(self) -> Tenants:
        """Tenants."""
        return Tenants(self._transport)

    @cached_property
    def keys(self) -> Keys:
        """Keys of tenants."""
        return Keys(self._transport)

    @cached_property
    def environments(self) -> TenantEnvironments:
        """Environments of tenants."""
        return TenantEnvironments(self._transport)

    @cached_property
    def templates(self) -> Templates:
        """Templates of tenants' agents."""
        return Templates(self._transport)

    @cached_property
    def storage(self) -> Storage:
        """Buckets and volumes of tenants."""
        return Storage(self._transport)

    @cached_property
    def audit(self) -> Audit:
        """The audit trail."""
        return Audit(self._transport)

    @cached_property
    def plans(self) -> Plans:
        """Plans."""
        return Plans(self._transport)

    @cached_property
    def models(self) -> AdminModels:
        """Models."""
        return AdminModels(self._transport)

    def caps(self) -> types.Caps:
        """Shows what bounds the code of agents."""
        return self._one(types.Caps, "GET", "/v1/admin/caps")

    def update_caps(self, **change: Unpack[params.CapsChange]) -> types.Caps:
        """Changes what bounds the code of agents."""
        return self._one(types.Caps, "PATCH", "/v1/admin/caps", body=change)

    def orphans(self) -> list[str]:
        """Lists sandboxes of which no record tells."""
        return (self._one(types.Orphans, "GET", "/v1/admin/sandboxes/orphans")).data

    def reap_orphans(self) -> list[str]:
        """Removes sandboxes of which no record tells."""
        return (self._one(types.Orphans, "DELETE", "/v1/admin/sandboxes/orphans")).data
