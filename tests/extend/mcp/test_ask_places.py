"""A server of the user's own configuration that names places to write is asked about once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.test_forms import tiny
from tests.extend.mcp.world import World, world
from tests.support.sandbox_support import has_sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]


def entry_of(tmp_path: Path, **more: Any) -> dict[str, Any]:
    command = [*tiny(tmp_path / "c" / "s.py"), f"--db={tmp_path}/d/x.db"]
    return {"type": "local", "command": command, **more}


@asynccontextmanager
async def attended(
    tmp_path: Path, entry: dict[str, Any], decided_by: str = "person, once"
) -> AsyncGenerator[World]:
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        it.ctx.session.is_attended = True
        it.ctx.decided_by = decided_by
        yield it


def list_asked(it: World) -> list[str]:
    return [each.permission for each in it.ctx.asked if each.permission == "mcp_write"]


async def test_what_the_user_agrees_to_is_written_and_not_asked_again(tmp_path: Path) -> None:
    place = tmp_path / "d" / "x.db"
    for count in (1, 0):
        async with attended(tmp_path, entry_of(tmp_path)) as it:
            await it.call("act", write=str(place), text="kept")
            await it.call("act", write=str(place), text="kept")
            assert list_asked(it) == ["mcp_write"] * count
            assert place.read_text() == "kept"
    assert [*tmp_path.rglob("*.places.json")]
    # Another place is another question; the first one is not open any more.
    moved = entry_of(tmp_path) | {"command": [*tiny(tmp_path / "c" / "s.py"), f"{tmp_path}/e/y.db"]}
    async with attended(tmp_path, moved) as it:
        await it.call("act", write=f"{tmp_path}/e/y.db", text="kept")
        assert list_asked(it) == ["mcp_write"]
        place.write_text("before")
        with suppress(ToolFailure):
            await it.call("act", write=str(place), text="lost")
        assert place.read_text() == "before"


@pytest.mark.parametrize("decided_by", ["rule", "profile yolo", "--auto", "extension"])
async def test_what_no_person_agrees_to_holds_in_this_process_alone(
    tmp_path: Path, decided_by: str
) -> None:
    place = tmp_path / "d" / "x.db"
    async with attended(tmp_path, entry_of(tmp_path), decided_by) as it:
        await it.call("act", write=str(place), text="kept")
        assert list_asked(it) == ["mcp_write"]
        assert place.read_text() == "kept"
    assert not [*tmp_path.rglob("*.places.json")]


async def test_a_no_is_kept_and_the_server_works(tmp_path: Path) -> None:
    async with attended(tmp_path, entry_of(tmp_path)) as it:
        it.ctx.deny = ("mcp_write",)
        assert (await it.call("act")).output == "here"
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "more", [{"sandbox": False}, {"sandbox": {"writable": ["~/d/x.db"]}}, {"command": None}]
)
async def test_nothing_is_asked_where_nothing_is_to_be_allowed(
    more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if "command" in more:
        # Settings and keys are only read.
        more = {"command": [*tiny(tmp_path / "c" / "s.py"), f"--config={tmp_path}/d/x.toml"]}
    entry = entry_of(tmp_path) | more
    async with attended(tmp_path, entry) as it:
        await it.call("act")
        assert list_asked(it) == []


async def test_nobody_is_asked_where_nobody_is(tmp_path: Path) -> None:
    async with world(tmp_path, {"p": entry_of(tmp_path)}, sandbox=SandboxConfig()) as it:
        it.ctx.session.is_attended = False
        await it.call("act")
        assert list_asked(it) == []
