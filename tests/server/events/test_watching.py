"""Files are watched while somebody follows the events of their directory, and else not."""

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.bounds import watch as watch_limits
from codeloop.schema.wire import replace
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.watch import project_watch, tree_watch
from tests.server.support.serving import served
from tests.server.support.streaming import Stream, following
from tests.support.scripted_project import wait_until

linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify exists on Linux only")


async def told(stream: Stream, change: Callable[[int], object], wanted: tuple[str, str]) -> None:
    """Change something again and again until the followers are told of it;
    watching begins a bit late.

    `wanted`: what happened, and how the name begins.
    """

    async def go_on() -> None:
        for count in range(1000):
            change(count)
            await asyncio.sleep(0.15)

    task = asyncio.create_task(go_on())
    await stream.until(
        lambda event: (said := _said(event))[0] == wanted[0] and said[1].startswith(wanted[1])
    )
    task.cancel()


def _said(event: dict[str, Any]) -> tuple[str, str]:
    inner = event.get("payload", event)
    properties = inner["properties"]
    match inner["type"]:
        case "file.watcher.updated":
            return properties["event"], Path(properties["file"]).name
        case "vcs.branch.updated":
            return "branch", properties.get("branch", "")
        case "tui.toast.show":
            return "toast", properties["message"]
        case _:
            return "", ""


@linux
@pytest.mark.parametrize("path", ["/event", "/global/event"])
async def test_followers_are_told_of_files_and_of_the_branch(tmp_path: Path, path: str) -> None:
    async with served(tmp_path) as it:
        (it.work / ".git").mkdir()
        for name in ("objects", "refs"):
            (it.work / ".git" / name).mkdir()
        head = it.work / ".git" / "HEAD"
        head.write_text("ref: refs/heads/main\n")
        project = await it.project()
        assert "watch" not in vars(project.services), "nothing is watched before"
        async with following(it, path) as stream:
            await told(
                stream, lambda n: (it.work / "a.txt").write_text(str(n)), ("change", "a.txt")
            )
            await told(
                stream,
                lambda n: head.write_text(f"ref: refs/heads/topic{n}\n"),
                ("branch", "topic"),
            )
        await wait_until(lambda: project.services.watch._task is None)


@linux
async def test_a_project_that_is_opened_later_and_one_that_comes_back_are_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_watch, "WATCH_POLL", replace(watch_limits.WATCH_POLL, value=50))
    async with served(tmp_path) as it, following(it, "/global/event") as stream:
        other = tmp_path / "other"
        other.mkdir()
        await it.app.get_project(other)
        await told(stream, lambda n: (other / f"new{n}").write_text("x"), ("add", "new"))
        shutil.rmtree(other)

        def come_back(count: int) -> None:
            other.mkdir(exist_ok=True)
            (other / f"again{count}").write_text("x")

        await told(stream, come_back, ("add", "again"))


async def test_where_too_much_would_be_watched_only_what_was_read_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_watch, "WATCH_POLL", replace(watch_limits.WATCH_POLL, value=50))
    monkeypatch.setattr(tree_watch, "WATCH_FOLDERS", replace(watch_limits.WATCH_FOLDERS, value=1))
    async with served(tmp_path) as it:
        (it.work / "folder").mkdir()
        (it.work / "a.txt").write_text("1")
        project = await it.project()
        real = (it.work / "a.txt").resolve()
        project.workspace.read_log.record_read("ses_1", real, read_file(real).stamp)
        async with following(it) as stream:
            events = await stream.until(lambda event: _said(event)[0] == "toast")
            assert "folders, so only its branch" in _said(events[-1])[1]
            await told(stream, lambda n: real.write_text(str(n) * n), ("change", "a.txt"))
