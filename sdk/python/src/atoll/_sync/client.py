# Code generated from _async/client.py by unasync 0.6.0; tools/generate.py runs it. DO NOT EDIT.
"""The client and its groups of operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from .._request import options
from .transport import Transport

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .._program import Program, SandboxSettings
    from .._results import Result
    from .account import (
        Activity,
        Approvals,
        Environments,
        Models,
        Tokens,
        Usage,
        Web,
    )
    from .admin import Admin
    from .agents import Agents, Skills, Vaults
    from .containers import Containers
    from .executions import Executions
    from .files import Files, Storage
    from .responses import Responses
    from .sandboxes import Sandbox, Sandboxes, Snapshots
    from .sessions import Sessions
    from .threads import Threads
    from .tools import Tools


class Atoll:
    """Calls one server with one key.

    api_key and base_url are those of ATOLL_API_KEY and ATOLL_BASE_URL where they are left
    out; an api_key of "" sends none. request_timeout bounds each call, in seconds; left out, each operation has a limit of
    its own. max_retries bounds how often a request is sent again, where that is safe.
    reconnect says whether streams go on after their connection broke. http_client is one of
    your own, with a proxy, say.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        request_timeout: float | None = None,
        max_retries: int = 2,
        reconnect: bool = True,
        headers: Mapping[str, str] | None = None,
        http_client: httpx.Client | None = None,
    ) -> None:
        import httpx

        chosen = options(api_key, base_url, request_timeout, max_retries, reconnect, headers)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        # Authorities are read where TLS is used alone, which takes a tenth of a second. No
        # request goes elsewhere than to base_url: redirects are not followed.
        client = http_client or httpx.Client(limits=limits, verify=chosen.base_url.startswith("https://"))
        self._transport = Transport(chosen, client, owned=http_client is None)

    def with_options(
        self,
        *,
        request_timeout: float | None = None,
        max_retries: int | None = None,
        reconnect: bool | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Atoll:
        """Returns a client that calls otherwise, over the same connections."""
        mine = self._transport.options
        changed = mine._replace(
            api_key=mine.api_key if api_key is None else api_key,
            request_timeout=mine.request_timeout if request_timeout is None else request_timeout,
            max_retries=mine.max_retries if max_retries is None else max_retries,
            reconnect=mine.reconnect if reconnect is None else reconnect,
            headers={**mine.headers, **(headers or {})},
        )
        other = object.__new__(Atoll)
        other._transport = Transport(changed, self._transport.http, owned=False)
        return other

    def execute(self, code: str, *, idempotency_key: str | None = None, **program: Unpack[Program]) -> Result:
        """Runs code and returns its result: executions.create."""
        return self.executions.create(code, idempotency_key=idempotency_key, **program)

    @cached_property
    def executions(self) -> Executions:
        """Programs that run in sandboxes of their own."""
        from .executions import Executions

        return Executions(self._transport)

    @cached_property
    def threads(self) -> Threads:
        """Home directories that outlive their executions."""
        from .threads import Threads

        return Threads(self._transport)

    @cached_property
    def files(self) -> Files:
        """Files that are uploaded once, and used by their ids."""
        from .files import Files

        return Files(self._transport)

    @cached_property
    def storage(self) -> Storage:
        """Files of threads and of volumes, and URLs that read and write them without a key."""
        from .files import Storage

        return Storage(self._transport)

    @cached_property
    def sandboxes(self) -> Sandboxes:
        """Named sandboxes."""
        from .sandboxes import Sandboxes

        return Sandboxes(self._transport)

    @cached_property
    def snapshots(self) -> Snapshots:
        """Sandboxes as they were at one moment."""
        from .sandboxes import Snapshots

        return Snapshots(self._transport)

    @cached_property
    def tools(self) -> Tools:
        """The tools of agents."""
        from .tools import Tools

        return Tools(self._transport)

    @cached_property
    def responses(self) -> Responses:
        """Answers of models, which may run code and search."""
        from .responses import Responses

        return Responses(self._transport)

    @cached_property
    def agents(self) -> Agents:
        """Agents."""
        from .agents import Agents

        return Agents(self._transport)

    @cached_property
    def skills(self) -> Skills:
        """Folders of instructions and programs that agents use."""
        from .agents import Skills

        return Skills(self._transport)

    @cached_property
    def vaults(self) -> Vaults:
        """Credentials that sessions use and models never see."""
        from .agents import Vaults

        return Vaults(self._transport)

    @cached_property
    def sessions(self) -> Sessions:
        """Conversations with an agent."""
        from .sessions import Sessions

        return Sessions(self._transport)

    @cached_property
    def containers(self) -> Containers:
        """Sandboxes that the code interpreter of responses uses."""
        from .containers import Containers

        return Containers(self._transport)

    @cached_property
    def models(self) -> Models:
        """The models that there are."""
        from .account import Models

        return Models(self._transport)

    @cached_property
    def environments(self) -> Environments:
        """Settings and permissions of programs."""
        from .account import Environments

        return Environments(self._transport)

    @cached_property
    def tokens(self) -> Tokens:
        """Short-lived tokens for web pages."""
        from .account import Tokens

        return Tokens(self._transport)

    @cached_property
    def usage(self) -> Usage:
        """Usage of the tenant."""
        from .account import Usage

        return Usage(self._transport)

    @cached_property
    def activity(self) -> Activity:
        """Log of runs."""
        from .account import Activity

        return Activity(self._transport)

    @cached_property
    def approvals(self) -> Approvals:
        """Tool calls that wait for a decision."""
        from .account import Approvals

        return Approvals(self._transport)

    @cached_property
    def web(self) -> Web:
        """Searches and pages."""
        from .account import Web

        return Web(self._transport)

    @cached_property
    def admin(self) -> Admin:
        """Operations for operators."""
        from .admin import Admin

        return Admin(self._transport)

    def sandbox(self, name: str, *, session: str | None = None, **settings: Unpack[SandboxSettings]) -> Sandbox:
        """Names a sandbox, without a request: sandboxes(...). As a context manager it makes
        the sandbox, and destroys it at the end if it made it."""
        return self.sandboxes(name, session=session, **settings)

    def close(self) -> None:
        """Closes the connections."""
        if self._transport.owned:
            self._transport.http.close()

    def __enter__(self) -> Atoll:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
