"""What the flags of `run`, `attach` and the conversation say."""

from pathlib import Path

from msgspec import Struct


class Options(Struct, frozen=True, kw_only=True):
    """The flags; what a command has no flag for keeps its default."""

    message: tuple[str, ...]
    directory: Path | None = None
    attach: str | None = None
    username: str | None = None
    password: str | None = None
    model: str | None = None
    agent: str | None = None
    go_on: bool = False
    session: str | None = None
    fork: bool = False
    at: str | None = None
    command: str | None = None
    title: str | None = None
    format: str = "text"
    files: tuple[Path, ...] = ()
    max_steps: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    auto: bool = False
    trust: bool = False
    thinking: bool = False
    no_compact: bool = False
    no_wait: bool = False
    config: Path | None = None
    record: Path | None = None
    force: bool = False
    replay: Path | None = None
    pace: float = 0.0
