"""Runs the Python snippets of documents, in order, against the server of ATOLL_BASE_URL.

    python tests/snippets.py docs/reference/sdk/python.md docs/how-to/migrate-from-another-sandbox.md sdk/python/README.md

The snippets of a document share their names. One that follows <!-- needs: model --> is run
where ATOLL_MODEL names a scripted model; one that needs a package, where that is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any

SNIPPET = re.compile(r"(?:^<!-- needs: (\w+) -->\n)?^```python\n(.*?)^```$", re.M | re.S)


def there(need: str) -> bool:
    return "ATOLL_MODEL" in os.environ if need == "model" else importlib.util.find_spec(need) is not None


def run(path: Path) -> int:
    text, names, failed, count = path.read_text(), {"__name__": "snippets"}, 0, 0
    space: dict[str, Any] = {**names}
    for found in SNIPPET.finditer(text):
        if found[1] and not there(found[1]):
            continue
        line = text.count("\n", 0, found.start(2))
        count += 1
        try:
            exec(compile("\n" * line + found[2], str(path), "exec"), space)
        except Exception:
            failed += 1
            traceback.print_exc()
    print(f"{path}: {count - failed} passed, {failed} failed")
    return failed if count else 1


if __name__ == "__main__":
    sys.exit(1 if sum(run(Path(name)) for name in sys.argv[1:]) else 0)
