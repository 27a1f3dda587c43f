"""What a program is run with."""

from __future__ import annotations

from typing import Literal, TypedDict


class Program(TypedDict, total=False):
    """The fields of POST /v1/sandbox/execute beside the code."""

    language: Literal["python", "node", "bash"]
    timeout: int
    """Most seconds the program may run; 60 if left out."""
    env_vars: dict[str, str]
    metadata: dict[str, str]
    """Kept with the record, by which it can be found."""
    thread_id: str
    """The home directory is what the thread's last execution left."""
    args: list[str]
    stdin: str
    stdin_base64: str
    files: dict[str, str]
    """Files of the working folder by name, as text."""
    files_base64: dict[str, str]
    outputs: list[str]
    """Files and folders that are kept when the program has ended."""
    sub_paths: list[str]
    """Narrows mounted connections: /data/{slug}/{path}."""
