"""What a server needs time for before it can speak of the first edit: to start,
to read the project.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import diagnostics_tracker, server_pool
from codeloop.lsp.client import push_habits
from codeloop.lsp.client.client import LanguageClient
from tests.lsp.world import world
from tests.support.patient_limits import LONG_LIMIT
from tests.support.scripted_project import wait_until

TOLD = "1 new error:\na.x:1: bad1 is not good (scripted B1)"


@pytest.fixture(autouse=True)
def short(patience: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits wait long for a server that has to start, and else a moment.

    A server that has just looked at the project may take long to speak of it.
    """
    monkeypatch.setattr(server_pool, "LSP_DIAGNOSTICS_TIME", Limit("test", 150, "ms", "for a test"))
    monkeypatch.setattr(push_habits, "_MAX_PAUSE_SECONDS", 60.0)


@pytest.mark.parametrize(
    "orders",
    [
        ("starts=0.6",),
        ("starts=0.6", "pull"),
        ("delay=0.5", "always"),
        ("delay=0.5", "always", "versionless"),
        ("pull", "slow=0.4"),
        ("indexes=0.5", "versionless"),
        ("lost at first",),
        ("lost at first", "pull"),
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


async def test_a_late_report_on_the_text_before_is_not_taken_for_one_on_the_edit(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, "indexes=0.5", "rereads=0.6", "delay=1.0", "versionless") as it:
        (it.root / "a.x").write_text("fine\n")
        assert await it.edit("a.x", "bad1\n") == TOLD


@pytest.mark.parametrize(
    "orders",
    [
        ("starts=0.6",),
        ("indexes=0.5", "versionless"),
        ("pull", "slow=0.4"),
        ("lost at first",),
    ],
)
async def test_the_first_edit_that_is_right_tells_nothing(
    tmp_path: Path, orders: tuple[str, ...]
) -> None:
    async with world(tmp_path, *orders) as it:
        (it.root / "a.x").write_text("bad0\n")
        assert await it.edit("a.x", "bad0\nfine\n") == ""
        await it.languages.wait_idle()
        assert it.late() == "", "what was wrong before is not new"


@pytest.mark.parametrize("pull", ["pull", "pulls later"])
async def test_a_slow_answer_about_the_text_before_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pull: str
) -> None:
    wait = LanguageClient.wait_for_diagnostics

    async def wait_once_it_is_asked(it: LanguageClient, path: Path, seconds: float) -> Any:
        """The time that a clean text is given ends while the first answer is awaited,
        however late a server says so.
        """
        await wait_until(lambda: it.pulls_diagnostics)
        return await wait(it, path, seconds)

    monkeypatch.setattr(LanguageClient, "wait_for_diagnostics", wait_once_it_is_asked)
    monkeypatch.setattr(diagnostics_tracker, "_ASSUME_CLEAN_SECONDS", 0.1)
    async with world(tmp_path, pull, "slow=0.6") as it:
        (it.root / "a.x").write_text("bad0\n")
        assert await it.edit("a.x", "bad0\nbad1\n") == TOLD.replace(":1:", ":2:")


async def test_later_edits_wait_a_moment_only(tmp_path: Path) -> None:
    async with world(tmp_path, "held") as it:
        assert await it.edit("a.x", "fine\n") == ""
        assert await it.edit("a.x", "bad1\n") == "", "it has spoken of this file, and is slow now"
        it.speak()
        await it.languages.wait_idle()
        assert it.late() == "Late: " + TOLD


async def test_a_server_that_never_speaks_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server_pool, "LSP_FIRST_DIAGNOSTICS_TIME", Limit("test", 1_200, "ms", "for a test")
    )
    async with world(tmp_path, "mute") as it:
        assert await it.edit("a.x", "bad1\n") == ""
        assert it.seconds >= 1
        monkeypatch.setattr(server_pool, "LSP_FIRST_DIAGNOSTICS_TIME", LONG_LIMIT)
        for name in ("a.x", "b.x", "c.x"):
            assert await it.edit(name, "bad2\n") == ""
            assert it.seconds < 30


async def test_a_server_that_speaks_twice_of_a_text_is_heard_out(tmp_path: Path) -> None:
    async with world(tmp_path, "twice", repeats=True, settle=60) as it:
        edit = asyncio.create_task(it.edit("a.x", "bad1\n"))
        await wait_until(lambda: it.languages.trackers and it.server.fresh_paths)
        for _ in range(10):  # by then the edit waits for what may follow
            await asyncio.sleep(0)
        assert it.server.client is not None
        assert it.server.client.find_diagnostics(it.root / "a.x") is None, "more may follow"
        it.server.client.habits.pause = 0.1
        it.speak()
        assert await edit == TOLD


async def test_a_server_that_asks_for_an_editors_types_does_without(tmp_path: Path) -> None:
    async with world(tmp_path, "asks") as it:
        async with asyncio.timeout(60):
            assert await it.edit("a.x", "bad1\n") == TOLD
