"""The life of a server: idle, too large, restarted; what people are told of it."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import server, server_pool
from codeloop.lsp.client import client
from codeloop.lsp.client.client import CHANGED, CREATED, DELETED
from codeloop.lsp.diagnostics_tracker import DiagnosticsTracker
from tests.lsp.world import world


async def gone(pid: int) -> None:
    async with asyncio.timeout(60):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.02)


def limit(monkeypatch: pytest.MonkeyPatch, module: object, name: str, value: int) -> None:
    monkeypatch.setattr(module, name, Limit("test", value, "ms", "for a test"))


async def test_one_that_nobody_needs_ends_and_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, server_pool, "LSP_MEMORY_POLL", 30)
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        await it.languages.wait_idle()
        (pid,) = it.started()
        limit(monkeypatch, server_pool, "LSP_IDLE", 50)
        await gone(pid)
        assert it.server.state == "waiting"
        assert it.warned == []
        limit(monkeypatch, server_pool, "LSP_IDLE", 60_000)
        assert "bad1" in await it.edit("a.x", "bad1\n")
        assert len(it.started()) == 2


async def test_they_are_looked_after_while_others_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, server_pool, "LSP_MEMORY_POLL", 30)
    limit(monkeypatch, server_pool, "LSP_IDLE", 50)
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        await it.languages.wait_idle()
        async with asyncio.timeout(60):
            while it.server.client is not None:  # then it is being ended
                await asyncio.sleep(0)
        it.languages.trackers["scripted", it.root / "other"] = DiagnosticsTracker(it.server)
        await gone(it.started()[0])
        await it.edit("a.x", "two\n")
        await it.languages.wait_idle()
        await gone(it.started()[1])


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="memory is only seen where there is a /proc"
)
async def test_one_that_uses_too_much_memory_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, server_pool, "LSP_MEMORY_POLL", 30)
    limit(monkeypatch, server, "LSP_MEMORY", 1_000_000)
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        (pid,) = it.started()
        await gone(pid)
        assert it.server.state == "failed"
        (warning,) = it.warned
        assert "MB of memory, 1 are allowed" in warning
        assert "codeloop lsp restart scripted" in warning
        await it.edit("a.x", "bad\n")
        assert len(it.started()) == 1


async def test_a_person_can_have_one_started_anew(tmp_path: Path) -> None:
    wanted = [0.0]
    async with world(tmp_path, restarts=lambda _: wanted[0]) as it:
        await it.edit("a.x", "one\n")
        await it.edit("a.x", "two\n")
        assert len(it.started()) == 1
        wanted[0] = time.time() + 1
        assert "bad1" in await it.edit("a.x", "bad1\n")
        await it.edit("a.x", "bad2\n")
        assert len(it.started()) == 2


async def test_it_is_told_only_what_we_do(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        text = (tmp_path / "traces" / "initialize.json").read_text()
    assert '"processId": null' in text, "in a sandbox our number means nobody, or somebody else"
    for absent in ("completion", "codeAction", "semanticTokens", "formatting", "inlayHint"):
        assert absent not in text


async def test_it_hears_of_changed_files_when_it_asks_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, client, "LSP_STOP", 20_000)  # it is not killed before it has read everything
    async with world(tmp_path, "watch") as it:
        await it.edit("a.x", "one\n")
        await it.edit("a.x", "two\n")
        assert it.watched[-1]
        it.languages.notify_changed(it.root / "b.x", CREATED)
        it.languages.notify_changed(it.root / "b.txt", CHANGED)
        it.languages.notify_changed(it.root / "a.x", DELETED)
        await it.edit("a.x", "three\n")
    # Whole once the server has ended.
    heard = [line for line in it.trace() if ".x " in line or ".txt" in line]
    assert heard[-4:] == ["a.x 2", "b.x 1", "a.x 3", "a.x 2"]
    assert heard[:-4] in ([], ["a.x 1"]), "it may have asked before the first edit was told"
    assert not it.watched[-1]


async def test_what_a_command_did_to_an_open_file_is_taken_up(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        await it.edit("b.x", "one\n")
        (it.root / "a.x").write_text("bad1\n")
        assert (
            await it.edit("b.x", "two\n") == "1 new error:\na.x:1: bad1 is not good (scripted B1)"
        )
        (it.root / "a.x").unlink()
        assert await it.edit("b.x", "three\n") == ""


async def test_one_process_serves_many_roots_where_a_server_can(tmp_path: Path) -> None:
    async with world(tmp_path, roots=["mark"], shared="folders") as it:
        for name in "abcdefg":
            (it.root / name).mkdir()
            (it.root / name / "mark").touch()
            assert "bad1" in await it.edit(f"{name}/a.x", "bad1\n")
        assert len(it.started()) == 1
        assert [line for line in it.trace() if "added" in line] == [
            f"added {name}" for name in "bcdefg"
        ]
        await it.server.restart()
        await it.edit("a/a.x", "good\n")
        greeting = json.loads((tmp_path / "traces" / "initialize.json").read_text())
        assert [each["name"] for each in greeting["workspaceFolders"]] == [*"abcdefg"]


@pytest.mark.slow
async def test_a_server_of_one_root_has_five_processes_at_most(tmp_path: Path) -> None:
    async with world(tmp_path, roots=["mark"]) as it:
        for name in "abcdefg":
            (it.root / name).mkdir()
            (it.root / name / "mark").touch()
            assert "bad1" in await it.edit(f"{name}/a.x", "bad1\n")
        await it.languages.wait_idle()
        states = [tracker.server.state for tracker in it.languages.trackers.values()]
        assert states == [*(["waiting"] * 2), *(["connected"] * 5)]
