"""The part of the client `perplexityai` that sandboxes can use: Perplexity().search.create.

    from perplexity import Perplexity
    for page in Perplexity().search.create(query="coral atolls", max_results=5).results:
        print(page.title, page.url, page.snippet)

PERPLEXITY_BASE_URL and PERPLEXITY_API_KEY are set where a sandbox has the web. `pip install
perplexityai` replaces this module with the whole client.
"""
import asyncio
import http.client
import json
import os
import types
import urllib.error
import urllib.request

__all__ = ["APIConnectionError", "APIError", "APIStatusError", "AsyncPerplexity", "AuthenticationError", "BadRequestError",
           "InternalServerError", "NotFoundError", "PerplexityError", "PermissionDeniedError", "Perplexity", "RateLimitError"]


class PerplexityError(Exception):
    pass


class APIError(PerplexityError):
    def __init__(self, message, body=None):
        super().__init__(message)
        self.message, self.body = message, body


class APIConnectionError(APIError):
    pass


class APIStatusError(APIError):
    def __init__(self, message, body=None, status_code=0):
        super().__init__(message, body)
        self.status_code = status_code


class BadRequestError(APIStatusError):
    pass


class AuthenticationError(APIStatusError):
    pass


class PermissionDeniedError(APIStatusError):
    pass


class NotFoundError(APIStatusError):
    pass


class RateLimitError(APIStatusError):
    pass


class InternalServerError(APIStatusError):
    pass


_STATUS = {400: BadRequestError, 401: AuthenticationError, 403: PermissionDeniedError, 404: NotFoundError, 429: RateLimitError}


class _Object(types.SimpleNamespace):
    """An object of an answer; fields it lacks are None, as in the whole client."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def model_dump(self):
        return {k: [v.model_dump() for v in x] if isinstance(x, list) and x and isinstance(x[0], _Object) else x
                for k, x in vars(self).items()}

    to_dict = model_dump


class _Search:
    def __init__(self, client):
        self._client = client

    def create(self, *, query, timeout=None, extra_body=None, **options):
        """Searches for a text, or a list of texts. options are the fields of POST /search."""
        return self._client._post("/search", dict(options, query=query, **(extra_body or {})), timeout)


class _AsyncSearch(_Search):
    async def create(self, **options):
        return await asyncio.to_thread(_Search.create, self, **options)


class Perplexity:
    _search = _Search

    def __init__(self, *, api_key=None, base_url=None, timeout=150, **_):
        self.api_key = api_key or os.environ.get("PERPLEXITY_API_KEY")
        self.base_url = (base_url or os.environ.get("PERPLEXITY_BASE_URL") or "https://api.perplexity.ai").rstrip("/")
        self.timeout = timeout
        if not self.api_key:
            raise PerplexityError("no API key: this program runs without access to the web. In code of a response's sandbox the server sets "
                                  "PERPLEXITY_API_KEY; elsewhere pass api_key")
        self.search = self._search(self)

    def __getattr__(self, name):
        raise AttributeError(f"this image's client only searches: client.search.create. 'pip install perplexityai' brings client.{name}")

    def _post(self, path, body, timeout):
        request = urllib.request.Request(self.base_url + path, json.dumps(body).encode(), {
            "Authorization": "Bearer " + self.api_key, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout or self.timeout) as answer:
                return json.load(answer, object_hook=lambda fields: _Object(**fields))
        except urllib.error.HTTPError as e:
            text = e.read().decode("utf-8", "replace")
            kind = _STATUS.get(e.code, InternalServerError if e.code >= 500 else APIStatusError)
            raise kind(f"Error code: {e.code} - {text}", text, e.code) from None
        except (OSError, ValueError, http.client.HTTPException) as e:
            raise APIConnectionError(f"cannot reach {self.base_url}: {e}") from e

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class AsyncPerplexity(Perplexity):
    _search = _AsyncSearch

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass


Client, AsyncClient = Perplexity, AsyncPerplexity
