"""A project as the library opens it, in this process or on a server: the
same tests hold for both.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

import codeloop
from codeloop.app.app import App
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.server.server import ListenOptions, Server
from tests.support.scripted_project import PASSWORD, make_startup

WHERE = "CODELOOP_TEST_LIBRARY"


class Open(Protocol):
    """Opens a project below a folder whose model says `answers`."""

    def __call__(
        self, answers: Sequence[ScriptedAnswer], **options: Any
    ) -> AbstractAsyncContextManager[codeloop.AgentProject]: ...


@asynccontextmanager
async def here(
    folder: Path, answers: Sequence[ScriptedAnswer], **options: Any
) -> AsyncGenerator[codeloop.AgentProject]:
    """Open a project in this process."""
    start = make_startup(folder / "home", work(folder), **options.pop("settings", {}))
    async with codeloop.open(
        start.directory,
        replay=script(folder, answers),
        settings=start.settings,
        environment=start.environment,
        **options,
    ) as project:
        yield project


@asynccontextmanager
async def there(
    folder: Path, answers: Sequence[ScriptedAnswer], **options: Any
) -> AsyncGenerator[codeloop.AgentProject]:
    """Serve a project, and connect to it."""
    start = make_startup(folder / "home", work(folder), **options.pop("settings", {}))
    start = msgspec.structs.replace(start, replay=script(folder, answers))
    server = Server(App(start), ListenOptions(password=PASSWORD))
    await server.start()
    try:
        async with codeloop.connect(server.url, password=PASSWORD, **options) as project:
            yield project
    finally:
        await server.stop()


def work(folder: Path) -> Path:
    """Return the project's directory."""
    (folder / "work").mkdir(exist_ok=True)
    return folder / "work"


def script(folder: Path, answers: Sequence[ScriptedAnswer]) -> Path:
    """Write what the model says."""
    path = folder / "script.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(answer) + b"\n" for answer in answers))
    return path


@pytest.fixture(params=["here", "there"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Open projects in this process, then on a server."""
    how = here if request.param == "here" else there

    def open_it(answers: Sequence[ScriptedAnswer], **options: Any) -> Any:
        return how(tmp_path, answers, **options)

    return open_it


def descriptors() -> set[str]:
    """Return what files and sockets this process has open."""
    found: set[str] = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(f"{path.name} {path.readlink()}")
    return found
