"""What a server needs time for before it can speak of the first edit: to start, to read the project."""

import asyncio
from pathlib import Path

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import diagnostics_tracker, server_pool
from tests.lsp.world import world

TOLD = "1 new error:\na.x:1: bad1 is not good (scripted B1)"


@pytest.fixture(autouse=True)
def short(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits wait long for a server that has to start, and else a moment."""
    monkeypatch.setattr(server_pool, "LSP_DIAGNOSTICS_TIME", Limit("test", 150, "ms", "for a test"))


@pytest.mark.parametrize(
    "orders",
    [
        ("starts=0.6",),
        ("starts=0.6", "pull"),
        ("delay=0.5", "always"),
        ("delay=0.5", "always", "versionless"),
        ("pull", "slow=0.4"),
        ("indexes=0.5", "versionless"),
    ],
)
@pytest.mark.parametrize("before", ["fine\n", None])
async def test_the_first_edit_of_a_file_tells_its_error(
    tmp_path: Path, orders: tuple[str, ...], before: str | None
) -> None:
    async with world(tmp_path, *orders) as it:
        if before is not None:
            (it.root / "a.x").write_text(before)
        assert await it.edit("a.x", "bad1\n") == TOLD


async def test_a_late_report_on_the_text_before_is_not_taken_for_one_on_the_edit(tmp_path: Path) -> None:
    async with world(tmp_path, "indexes=0.5", "rereads=0.6", "delay=1.0", "versionless") as it:
        (it.root / "a.x").write_text("fine\n")
        assert await it.edit("a.x", "bad1\n") == TOLD


@pytest.mark.parametrize("orders", [("starts=0.6",), ("indexes=0.5", "versionless"), ("pull", "slow=0.4")])
async def test_the_first_edit_that_is_right_tells_nothing(tmp_path: Path, orders: tuple[str, ...]) -> None:
    async with world(tmp_path, *orders) as it:
        (it.root / "a.x").write_text("bad0\n")
        assert await it.edit("a.x", "bad0\nfine\n") == ""
        await it.languages.wait_idle()
        assert it.late() == "", "what was wrong before is not new"


@pytest.mark.parametrize(("pull", "seconds"), [("pull", 0.1), ("pulls later", 0.5)])
async def test_a_slow_answer_about_the_text_before_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pull: str, seconds: float
) -> None:
    monkeypatch.setattr(diagnostics_tracker, "_ASSUME_CLEAN_SECONDS", seconds)
    async with world(tmp_path, pull, "slow=0.6") as it:
        (it.root / "a.x").write_text("bad0\n")
        assert await it.edit("a.x", "bad0\nbad1\n") == TOLD.replace(":1:", ":2:")


async def test_later_edits_wait_a_moment_only(tmp_path: Path) -> None:
    async with world(tmp_path, "delay=0.8") as it:
        assert await it.edit("a.x", "fine\n") == ""
        assert await it.edit("a.x", "bad1\n") == "", "it has spoken of this file, and is slow now"
        await it.languages.wait_idle()
        assert it.late() == "Late: " + TOLD


async def test_a_server_that_never_speaks_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_pool, "LSP_FIRST_DIAGNOSTICS_TIME", Limit("test", 1_200, "ms", "for a test"))
    async with world(tmp_path, "mute") as it:
        assert await it.edit("a.x", "bad1\n") == ""
        assert it.seconds >= 1
        for name in ("a.x", "b.x", "c.x"):
            assert await it.edit(name, "bad2\n") == ""
            assert it.seconds < 1


async def test_a_server_that_speaks_twice_of_a_text_is_heard_out(tmp_path: Path) -> None:
    async with world(tmp_path, "twice", repeats=True, settle=0.4) as it:
        assert await it.edit("a.x", "bad1\n") == TOLD


async def test_a_server_that_asks_for_an_editors_types_does_without(tmp_path: Path) -> None:
    async with world(tmp_path, "asks") as it:
        async with asyncio.timeout(20):
            assert await it.edit("a.x", "bad1\n") == TOLD
