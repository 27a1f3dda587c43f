"""What schemathesis must be told of the API to ask all of it."""

import io
import tarfile

import schemathesis
from hypothesis import strategies as st


def archive(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(name.encode())
            tar.addfile(entry, io.BytesIO(name.encode()))
    return out.getvalue()


names = st.text(min_size=1, max_size=40).filter(lambda n: "\0" not in n and n.isprintable()) | st.sampled_from(["../up", "/etc/passwd", ".", "a/" * 200, "a" * 300])
schemathesis.openapi.media_type("application/x-tar", st.lists(names, max_size=4).map(archive) | st.binary(max_size=2000))


@schemathesis.hook
def before_call(context, case, **kwargs):
    """Has streams that last until their client leaves end at once: those are of sessions and
    folders that there are, so they are asked for others."""
    match case.operation.definition.raw["operationId"]:
        case "mcpListen":
            case.headers["Mcp-Session-Id"] = "none-" + str(case.headers.get("Mcp-Session-Id", ""))
        case "watchSandboxFiles":
            case.query["path"] = "/none/" + str(case.query.get("path", ""))
