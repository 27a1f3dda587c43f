"""Search the web and read its pages from a sandbox, which needs no network for it.

    import atoll_web
    for page in atoll_web.search("coral atolls", max_results=5):
        print(page["title"], page["url"], page["snippet"])
    print(atoll_web.fetch("https://example.org/")["text"])
    print(atoll_web.people("lighthouse keepers of Norway"))

The server makes the calls, and counts each. What fails is an atoll_web.Error, whose text says
what to do. As a command, in any language: atoll-web search WORDS, fetch URL, people WORDS.
"""
import http.client
import json
import os
import sys
import urllib.parse

__all__ = ["Error", "fetch", "people", "search"]

_TIMEOUT = 150  # seconds; the server answers earlier


class Error(Exception):
    """A call that failed. status is that of HTTP, 0 without an answer; code says what kind it is."""

    def __init__(self, message, status=0, code="unavailable"):
        super().__init__(message)
        self.status = status
        self.code = code


def search(query, max_results=10, **options):
    """Search the web for a text, or a list of up to 5 whose results are merged.

    Returns a list, best first, of dicts with title, url, snippet, date and last_updated.
    options are those of the server's POST /v1/search, such as
    search_domain_filter=["example.org"] or search_recency_filter="week".
    """
    return _call("/search", dict(options, query=query, max_results=max_results))["results"]


def people(query, max_results=10, **options):
    """Search for people; as search."""
    return _call("/search", dict(options, query=query, max_results=max_results, search_type="people"))["results"]


def fetch(url, **options):
    """Read a page as text.

    Returns a dict with url, final_url, title, text, media_type, date, last_updated and
    truncated. For a list of up to 10 URLs it returns a list of them, in which error says why a
    page could not be read. options: max_tokens_per_page=25000.
    """
    pages = _call("/fetch", dict(options, url=url))["contents"]
    if not isinstance(url, str):
        return pages
    if pages[0]["error"]:
        raise Error(pages[0]["error"], 200, "page_error")
    return pages[0]


def _call(path, body):
    base, token = os.environ.get("ATOLL_WEB_URL"), os.environ.get("ATOLL_WEB_TOKEN")
    if not base or not token:
        raise Error("there is no web for this program: it is not code that a model runs in a response's "
                    "sandbox, or ATOLL_WEB_URL and ATOLL_WEB_TOKEN were taken from its environment")
    where = urllib.parse.urlsplit(base)
    # No proxy of the environment: the address is this sandbox's own.
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=_TIMEOUT)
    try:
        connection.request("POST", path, json.dumps(body), {
            "Authorization": "Bearer " + token, "Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as e:
        raise Error(f"the web cannot be asked: {e or type(e).__name__}. A process that has outlived its call "
                    "has lost it: make the call again") from e
    finally:
        connection.close()
    try:
        said = json.loads(text)
    except ValueError:
        said = {}
    if status != 200:
        raise Error(said.get("message") or f"the server answered {status}", status, said.get("error") or "error")
    return said


def main(argv=None):
    """The command atoll-web: prints JSON, or with fetch the text of one page."""
    import argparse

    parser = argparse.ArgumentParser(prog="atoll-web", description="Search the web and read its pages from a sandbox.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in ("search", "search the web"), ("people", "search for people"):
        c = commands.add_parser(name, help=about + ": prints the results as JSON")
        c.add_argument("words", nargs="+")
        c.add_argument("-n", "--max-results", type=int, default=10)
    c = commands.add_parser("fetch", help="print the text of a page, or of several as JSON")
    c.add_argument("urls", nargs="+", metavar="url")
    args = parser.parse_args(argv)
    try:
        if args.command == "fetch" and len(args.urls) == 1:
            print(fetch(args.urls[0])["text"])
        elif args.command == "fetch":
            print(json.dumps(fetch(args.urls), indent=1, ensure_ascii=False))
        else:
            call = search if args.command == "search" else people
            print(json.dumps(call(" ".join(args.words), max_results=args.max_results), indent=1, ensure_ascii=False))
    except Error as e:
        print(f"atoll-web: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
