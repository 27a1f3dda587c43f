"""Writes the generated files of this package from api/openapi.json and src/atoll/_async.

    python tools/generate.py            # writes them
    python tools/generate.py --check    # fails where one is not what it would write

types.py and params.py come from datamodel-code-generator, _sync from unasync; the versions
are those of tools/requirements.txt. _idempotent.py lists the operations that are sent
with an Idempotency-Key.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import tokenize_rt  # type: ignore[import-untyped]
import unasync  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "atoll"
DOCUMENT = HERE.parents[2] / "api" / "openapi.json"
REQUIREMENTS = (HERE / "requirements.txt").read_text().split()
PINNED = {
    name: version
    for name, version in (line.split("==") for line in REQUIREMENTS if "==" in line)
    if name in ("datamodel-code-generator", "unasync")
}
JSON_MEDIA = ("application/json", "application/x-ndjson", "text/event-stream")

# Names of the asynchronous source that the synchronous one has otherwise; those that begin
# with Async lose that.
SYNC_NAMES = {
    "AsyncClient": "Client",
    "aclose": "close",
    "aiter_raw": "iter_raw",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "async_sleep": "sleep",
    "async_shield": "shield",
    "async_whole": "whole",
    "async_deadline": "deadline",
    "async_content": "content_of",
    "anext": "next",
    "_async": "_sync",
}


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        found = {value["$ref"].rsplit("/", 1)[-1]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*(references(v) for v in value.values()))
    if isinstance(value, list):
        return set().union(*(references(v) for v in value))
    return set()


def narrowed(document: dict[str, Any], requests: bool) -> dict[str, Any]:
    """The document with the schemas alone that requests have, or that answers have."""
    schemas = document["components"]["schemas"]
    wanted: set[str] = set()
    for operations in document["paths"].values():
        for operation in operations.values():
            bodies = [operation.get("requestBody", {})] if requests else list(operation["responses"].values())
            for body in bodies:
                wanted |= references([body.get("content", {}).get(media) for media in JSON_MEDIA])
    todo = list(wanted)
    while todo:
        more = references(schemas[todo.pop()]) - wanted
        wanted |= more
        todo += more
    return {
        "openapi": document["openapi"],
        "info": document["info"],
        "paths": {},
        "components": {"schemas": {name: copy.deepcopy(schemas[name]) for name in sorted(wanted)}},
    }


def header(generator: str) -> str:
    version = f"{generator} {metadata.version(generator)}"
    return f"# Code generated from api/openapi.json by {version}; tools/generate.py runs it. DO NOT EDIT.\n"


def wire(document: dict[str, Any], requests: bool) -> str:
    kind = "typing.TypedDict" if requests else "dataclasses.dataclass"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "out.py")
        source.write_text(json.dumps(narrowed(document, requests)))
        command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(source), "--output", str(target)]
        command += ["--input-file-type", "openapi", "--output-model-type", kind, "--target-python-version", "3.10"]
        command += ["--enum-field-as-literal", "all", "--use-standard-collections", "--use-union-operator"]
        command += ["--disable-timestamp", "--use-double-quotes", "--use-schema-description", "--use-field-description"]
        command += ["--formatters", "builtin", "--no-use-closed-typed-dict", "--disable-warnings"]
        if not requests:
            command += ["--custom-template-dir", str(HERE / "templates"), "--output-datetime-class", "datetime"]
        subprocess.run(command, check=True)
        text = target.read_text()
    body = text[text.index("from __future__") :]
    if requests:
        # Python 3.10 has no NotRequired, which type checkers alone look at.
        body = body.replace(
            "from typing_extensions import NotRequired\n",
            "if TYPE_CHECKING:\n    from typing_extensions import NotRequired\nelse:\n    NotRequired = Optional\n",
        )
        body = re.sub(
            r"from typing import (.*)\n", r"from typing import TYPE_CHECKING, \1, Optional" + "\n", body, count=1
        )
    else:
        body = re.sub(r"from dataclasses import .*\n", "", body)
        body = body.replace("from __future__ import annotations\n", "from __future__ import annotations\n", 1)
        body = re.sub(
            r"from typing import (.*)\n",
            r"from typing import \1, ClassVar" + "\n\nfrom ._record import Record\n",
            body,
            count=1,
        )
    return header("datamodel-code-generator") + body


def idempotent(document: dict[str, Any]) -> str:
    found = []
    for path, operations in sorted(document["paths"].items()):
        for method, operation in sorted(operations.items()):
            if operation.get("x-idempotency-automatic"):
                found.append(f'        ("{method.upper()}", "{re.sub(r"{[^}]*}", "{}", path)}"),\n')
    return (
        "# Code generated from api/openapi.json by tools/generate.py. DO NOT EDIT.\n"
        '"""The operations that are sent with an Idempotency-Key."""\n\n'
        "OPERATIONS = frozenset(\n    {\n" + "".join(found) + "    }\n)\n"
    )


def synchronous(source: Path) -> str:
    text = source.read_text()
    names = {name: name[5:] for name in re.findall(r"\bAsync[A-Z]\w*", text)}
    rule = unasync.Rule("/_async/", "/_sync/", names | SYNC_NAMES)
    tokens = rule._unasync_tokens(tokenize_rt.src_to_tokens(text))
    version = f"unasync {metadata.version('unasync')}"
    made: str = tokenize_rt.tokens_to_src(tokens)
    return f"# Code generated from _async/{source.name} by {version}; tools/generate.py runs it. DO NOT EDIT.\n{made}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file would change")
    parser.add_argument("--sync-only", action="store_true", help="write _sync alone")
    options = parser.parse_args()
    for package, version in PINNED.items():
        if metadata.version(package) != version:
            print(f"{package} must be {version}: pip install -r {HERE / 'requirements.txt'}", file=sys.stderr)
            return 1
    files = {
        PACKAGE / "_sync" / source.name: synchronous(source) for source in sorted((PACKAGE / "_async").glob("*.py"))
    }
    stale = [old for old in (PACKAGE / "_sync").glob("*.py") if old not in files]
    if not options.sync_only:
        document = json.loads(DOCUMENT.read_text())
        files[PACKAGE / "types.py"] = wire(document, requests=False)
        files[PACKAGE / "params.py"] = wire(document, requests=True)
        files[PACKAGE / "_idempotent.py"] = idempotent(document)
    changed = stale + [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if options.check:
        for path in changed:
            print(f"{path} is out of date: run tools/generate.py", file=sys.stderr)
        return 1 if changed else 0
    for path in stale:
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
