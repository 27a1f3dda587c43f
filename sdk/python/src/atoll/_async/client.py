"""The client and its groups of operations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING

from .._request import options
from .transport import AsyncTransport

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

    from .._program import Program, SandboxSettings
    from .._results import Result
    from .account import (
        AsyncActivity,
        AsyncApprovals,
        AsyncEnvironments,
        AsyncModels,
        AsyncTokens,
        AsyncUsage,
        AsyncWeb,
    )
    from .admin import AsyncAdmin
    from .agents import AsyncAgents, AsyncSkills, AsyncVaults
    from .containers import AsyncContainers
    from .executions import AsyncExecutions
    from .files import AsyncFiles, AsyncStorage
    from .responses import AsyncResponses
    from .sandboxes import AsyncSandbox, AsyncSandboxes, AsyncSnapshots
    from .sessions import AsyncSessions
    from .threads import AsyncThreads
    from .tools import AsyncTools


class AsyncAtoll:
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
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        import httpx

        chosen = options(api_key, base_url, request_timeout, max_retries, reconnect, headers)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        # Authorities are read where TLS is used alone, which takes a tenth of a second. No
        # request goes elsewhere than to base_url: redirects are not followed.
        client = http_client or httpx.AsyncClient(limits=limits, verify=chosen.base_url.startswith("https://"))
        self._transport = AsyncTransport(chosen, client, owned=http_client is None)

    def with_options(
        self,
        *,
        request_timeout: float | None = None,
        max_retries: int | None = None,
        reconnect: bool | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncAtoll:
        """Returns a client that calls otherwise, over the same connections."""
        mine = self._transport.options
        changed = mine._replace(
            api_key=mine.api_key if api_key is None else api_key,
            request_timeout=mine.request_timeout if request_timeout is None else request_timeout,
            max_retries=mine.max_retries if max_retries is None else max_retries,
            reconnect=mine.reconnect if reconnect is None else reconnect,
            headers={**mine.headers, **(headers or {})},
        )
        other = object.__new__(AsyncAtoll)
        other._transport = AsyncTransport(changed, self._transport.http, owned=False)
        return other

    async def execute(self, code: str, *, idempotency_key: str | None = None, **program: Unpack[Program]) -> Result:
        """Runs code and returns its result: executions.create."""
        return await self.executions.create(code, idempotency_key=idempotency_key, **program)

    @cached_property
    def executions(self) -> AsyncExecutions:
        """Programs that run in sandboxes of their own."""
        from .executions import AsyncExecutions

        return AsyncExecutions(self._transport)

    @cached_property
    def threads(self) -> AsyncThreads:
        """Home directories that outlive their executions."""
        from .threads import AsyncThreads

        return AsyncThreads(self._transport)

    @cached_property
    def files(self) -> AsyncFiles:
        """Files that are uploaded once, and used by their ids."""
        from .files import AsyncFiles

        return AsyncFiles(self._transport)

    @cached_property
    def storage(self) -> AsyncStorage:
        """Files of threads and of volumes, and URLs that read and write them without a key."""
        from .files import AsyncStorage

        return AsyncStorage(self._transport)

    @cached_property
    def sandboxes(self) -> AsyncSandboxes:
        """Named sandboxes."""
        from .sandboxes import AsyncSandboxes

        return AsyncSandboxes(self._transport)

    @cached_property
    def snapshots(self) -> AsyncSnapshots:
        """Sandboxes as they were at one moment."""
        from .sandboxes import AsyncSnapshots

        return AsyncSnapshots(self._transport)

    @cached_property
    def tools(self) -> AsyncTools:
        """The tools of agents."""
        from .tools import AsyncTools

        return AsyncTools(self._transport)

    @cached_property
    def responses(self) -> AsyncResponses:
        """Answers of models, which may run code and search."""
        from .responses import AsyncResponses

        return AsyncResponses(self._transport)

    @cached_property
    def agents(self) -> AsyncAgents:
        """Agents."""
        from .agents import AsyncAgents

        return AsyncAgents(self._transport)

    @cached_property
    def skills(self) -> AsyncSkills:
        """Folders of instructions and programs that agents use."""
        from .agents import AsyncSkills

        return AsyncSkills(self._transport)

    @cached_property
    def vaults(self) -> AsyncVaults:
        """Credentials that sessions use and models never see."""
        from .agents import AsyncVaults

        return AsyncVaults(self._transport)

    @cached_property
    def sessions(self) -> AsyncSessions:
        """Conversations with an agent."""
        from .sessions import AsyncSessions

        return AsyncSessions(self._transport)

    @cached_property
    def containers(self) -> AsyncContainers:
        """Sandboxes that the code interpreter of responses uses."""
        from .containers import AsyncContainers

        return AsyncContainers(self._transport)

    @cached_property
    def models(self) -> AsyncModels:
        """The models that there are."""
        from .account import AsyncModels

        return AsyncModels(self._transport)

    @cached_property
    def environments(self) -> AsyncEnvironments:
        """Settings and permissions of programs."""
        from .account import AsyncEnvironments

        return AsyncEnvironments(self._transport)

    @cached_property
    def tokens(self) -> AsyncTokens:
        """Short-lived tokens for web pages."""
        from .account import AsyncTokens

        return AsyncTokens(self._transport)

    @cached_property
    def usage(self) -> AsyncUsage:
        """Usage of the tenant."""
        from .account import AsyncUsage

        return AsyncUsage(self._transport)

    @cached_property
    def activity(self) -> AsyncActivity:
        """Log of runs."""
        from .account import AsyncActivity

        return AsyncActivity(self._transport)

    @cached_property
    def approvals(self) -> AsyncApprovals:
        """Tool calls that wait for a decision."""
        from .account import AsyncApprovals

        return AsyncApprovals(self._transport)

    @cached_property
    def web(self) -> AsyncWeb:
        """Searches and pages."""
        from .account import AsyncWeb

        return AsyncWeb(self._transport)

    @cached_property
    def admin(self) -> AsyncAdmin:
        """Operations for operators."""
        from .admin import AsyncAdmin

        return AsyncAdmin(self._transport)

    def sandbox(self, name: str, *, session: str | None = None, **settings: Unpack[SandboxSettings]) -> AsyncSandbox:
        """Names a sandbox, without a request: sandboxes(...). As a context manager it makes
        the sandbox, and destroys it at the end if it made it."""
        return self.sandboxes(name, session=session, **settings)

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._transport.owned:
            await self._transport.http.aclose()

    async def __aenter__(self) -> AsyncAtoll:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
