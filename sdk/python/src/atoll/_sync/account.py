# Code generated from _async/account.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""Operations of a tenant: models, environments, usage, and the web."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import types
from .._filters import activity_query
from .._request import LONG_TIMEOUT
from .resource import Pager, Resource

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .. import params


class Models(Resource):
    """The models that a tenant may use, and its own keys for them."""

    def list(self) -> list[types.ListModel]:
        """Lists the models."""
        return (self._one(types.ModelList, "GET", "/v1/models")).data

    def get(self, model: str) -> types.ListModel:
        """Shows a model."""
        return self._one(types.ListModel, "GET", "/v1/models/{}", model)

    def keys(self, *, limit: int | None = None) -> Pager[types.ModelKey]:
        """Lists the tenant's own keys of providers, without the keys themselves."""
        return self._list(types.ModelKey, "/v1/model-keys", query={"limit": limit})

    def set_key(self, model: str, **key: Unpack[params.NewModelKey]) -> types.ModelKey:
        """Has the tenant's own key used for a model."""
        return self._one(types.ModelKey, "PUT", "/v1/model-keys/{}", model, body=key)

    def delete_key(self, model: str) -> None:
        """Forgets the tenant's own key for a model."""
        self._none("DELETE", "/v1/model-keys/{}", model)


class Environments(Resource):
    """Environments: settings and permissions of programs."""

    def create(self, **environment: Unpack[params.NewOwnEnvironment]) -> types.OwnEnvironment:
        """Makes an environment."""
        return self._one(types.OwnEnvironment, "POST", "/v1/environments", body=environment)

    def list(self, *, limit: int | None = None, page: str | None = None) -> Pager[types.OwnEnvironment]:
        """Lists environments."""
        return self._list(types.OwnEnvironment, "/v1/environments", query={"limit": limit, "page": page})

    def get(self, environment: str) -> types.OwnEnvironment:
        """Shows an environment."""
        return self._one(types.OwnEnvironment, "GET", "/v1/environments/{}", environment)

    def update(self, environment: str, **change: Unpack[params.OwnEnvironmentChange]) -> types.OwnEnvironment:
        """Changes an environment."""
        return self._one(types.OwnEnvironment, "PATCH", "/v1/environments/{}", environment, body=change)

    def delete(self, environment: str) -> None:
        """Deletes an environment."""
        self._none("DELETE", "/v1/environments/{}", environment)


class Tokens(Resource):
    """Short-lived tokens for web pages, which can do less than the key that makes them."""

    def create(self, **token: Unpack[params.NewToken]) -> types.Token:
        """Makes a token. The answer alone has the token itself."""
        return self._one(types.Token, "POST", "/v1/tokens", body=token)

    def list(self, *, limit: int | None = None, page: str | None = None) -> Pager[types.Token]:
        """Lists the tokens that the key has made, without the tokens themselves."""
        return self._list(types.Token, "/v1/tokens", query={"limit": limit, "page": page})

    def delete(self, token_id: str) -> None:
        """Ends a token."""
        self._none("DELETE", "/v1/tokens/{}", token_id)


class Usage(Resource):
    """Usage of the tenant."""

    def get(
        self,
        *,
        since: str | None = None,
        before: str | None = None,
        group_by: str | None = None,
        agent: str | None = None,
        session_id: str | None = None,
    ) -> types.Usage:
        """Returns the usage between two times; by default, of this month."""
        query = {"since": since, "before": before, "group_by": group_by, "agent": agent, "session_id": session_id}
        return self._one(types.Usage, "GET", "/v1/usage", query=query)


class Activity(Resource):
    """The record of calls: the callers, their code and the results."""

    def list(self, **filters: Any) -> Pager[types.Activity]:
        """Lists the calls of the tenant's keys, agents and sessions, newest first. filters are the
        parameters of the operation, such as since, agent, session_id, kind and status."""
        return self._list(types.Activity, "/v1/activity", query=activity_query(filters))


class Approvals(Resource):
    """Tool calls that wait for a decision."""

    def list(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        session_id: str | None = None,
        response_id: str | None = None,
        limit: int | None = None,
        page: str | None = None,
    ) -> Pager[types.Approval]:
        """Lists waiting calls, newest first; pass status for decided ones."""
        query = {"status": status, "agent": agent, "session_id": session_id, "response_id": response_id}
        return self._list(types.Approval, "/v1/approvals", query={**query, "limit": limit, "page": page})

    def get(self, approval_id: str) -> types.Approval:
        """Shows an approval."""
        return self._one(types.Approval, "GET", "/v1/approvals/{}", approval_id)

    def decide(self, approval_id: str, **decision: Unpack[params.Decision]) -> types.Approval:
        """Approves or denies the call."""
        return self._one(types.Approval, "POST", "/v1/approvals/{}", approval_id, body=decision)


class Web(Resource):
    """Searches and pages, with the operator's account."""

    def search(self, **request: Unpack[params.SearchRequest]) -> types.SearchAnswer:
        """Searches the web."""
        return self._one(types.SearchAnswer, "POST", "/v1/search", body=request, timeout=LONG_TIMEOUT)

    def fetch(self, **request: Unpack[params.FetchRequest]) -> types.FetchAnswer:
        """Reads pages."""
        return self._one(types.FetchAnswer, "POST", "/v1/fetch", body=request, timeout=LONG_TIMEOUT)
