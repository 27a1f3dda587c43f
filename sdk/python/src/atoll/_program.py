"""Inputs and settings of a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from .params import NetworkChange, SizeLimits


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


class SandboxSettings(TypedDict, total=False):
    """The fields of a new sandbox beside its name and session; times are in seconds."""

    image: str
    sleep_after: float
    timeout: float
    """When it is destroyed, from now."""
    env_vars: dict[str, str]
    limits: SizeLimits
    """How many cores and how much memory it has, at most those of its environment."""
    disk_size: int
    """Bytes that its files may have together."""
    network: NetworkChange
    environment: str
    snapshot: str
    """It begins as a snapshot."""
    files_only: bool
    """It takes the snapshot's files, not its processes."""
    sub_paths: list[str]
