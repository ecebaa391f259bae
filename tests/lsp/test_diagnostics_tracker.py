"""New errors after an edit, from a server that does as it is told."""

import asyncio
from pathlib import Path

import pytest

from codeloop.kit.limit import Limit
from codeloop.lsp import diagnostics_tracker, server_pool
from codeloop.lsp.client.diagnostic import Diagnostic, format_new_diagnostics
from codeloop.lsp.client.text_positions import TextPosition
from tests.lsp.world import World, world

HANGS = 25
"""Seconds: an edit that took longer would have waited for what never comes."""


def wait(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    for name in ("LSP_DIAGNOSTICS_TIME", "LSP_FIRST_DIAGNOSTICS_TIME"):
        monkeypatch.setattr(server_pool, name, Limit("test", milliseconds, "ms", "for a test"))


async def quiet(it: World) -> None:
    async with asyncio.timeout(60):
        await it.languages.wait_idle()


async def test_an_error_that_an_edit_brings_is_told_once(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert await it.edit("a.x", "one\n") == ""
        assert (
            await it.edit("a.x", "one\nbad1\n")
            == "1 new error:\na.x:2: bad1 is not good (scripted B1)"
        )
        assert await it.edit("a.x", "zero\none\nbad1\n") == "", "it only moved"
        assert await it.edit("a.x", "zero\none\n") == ""
        assert (
            await it.edit("a.x", "bad1\n") == "1 new error:\na.x:1: bad1 is not good (scripted B1)"
        )
        assert len(it.started()) == 1


async def test_what_was_wrong_before_is_not_told(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        (it.root / "a.x").write_text("bad0\n\nbad0 bad1\n")
        assert await it.edit("a.x", "bad0\nfine\nbad0 bad1\n") == ""
        assert "bad2" in await it.edit("a.x", "bad0\nbad2\nbad0 bad1\n")


async def test_a_pulled_diagnostic_counts_as_one_that_came_by_itself(tmp_path: Path) -> None:
    async with world(tmp_path, "pull") as it:
        (it.root / "a.x").write_text("bad0\n")
        assert (
            await it.edit("a.x", "bad0\nbad1\n")
            == "1 new error:\na.x:2: bad1 is not good (scripted B1)"
        )
        assert await it.edit("a.x", "") == ""


async def test_many_errors_are_counted(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        text = await it.edit("a.x", "".join(f"bad{number}\n" for number in range(30)))
        assert text.startswith("30 new errors:\n")
        assert text.endswith("\n(10 more)")
        assert len(text.splitlines()) == 22


def test_files_of_which_no_error_is_shown_are_named() -> None:
    errors = [(Path(f"{name}.x"), error(at)) for name in ("a", "b", "c") for at in range(15)]
    assert format_new_diagnostics(errors, lambda path: path.name).endswith(
        "\n(25 more, also in c.x)"
    )
    many = [(Path(f"{at:02}.x"), error(1)) for at in range(40)]
    assert (
        ", also in 20.x, 21.x, 22.x, 23.x, 24.x, 25.x, 26.x, 27.x, ...)"
        in format_new_diagnostics(many, lambda path: path.name)
    )


def error(line: int) -> Diagnostic:
    return Diagnostic(TextPosition(line, 0), TextPosition(line, 1), 1, "", "", "wrong", "")


async def test_diagnostics_of_another_version_are_dropped(tmp_path: Path) -> None:
    async with world(tmp_path, "stale") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        assert "bad1" in await it.edit("a.x", "bad1\n")
        assert await it.edit("a.x", "two\n") == "", "what it said of the text before came first"


async def test_what_comes_without_a_version_counts_when_it_is_quiet(tmp_path: Path) -> None:
    async with world(tmp_path, "versionless", "stale") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        assert "bad1" in await it.edit("a.x", "bad1\n")
        assert await it.edit("a.x", "two\n") == ""


@pytest.mark.slow
async def test_what_comes_late_without_a_version_is_not_taken_to_be_of_the_text_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "versionless", "held") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        wait(monkeypatch, 300)
        await it.edit("a.x", "bad1\n")
        await it.edit("a.x", "two\n")
        it.speak(count=1)
        async with asyncio.timeout(60):
            while it.trace().count("textDocument/didChange") < 3:  # it is asked again
                await asyncio.sleep(0.02)
        assert it.late() == "", "that was of the text before"
        it.speak()
        await quiet(it)
        assert it.late() == ""
        assert await it.edit("a.x", "bad2\n") == ""
        it.speak()
        await quiet(it)
        assert it.late() == "Late: 1 new error:\na.x:1: bad2 is not good (scripted B1)"


async def test_what_is_said_of_another_file_before_an_edit_is_known_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "uses", "held") as it:
        await it.edit("a.x", "total\n")
        await it.edit("b.x", "a.total\n")
        await quiet(it)
        wait(monkeypatch, 300)
        assert await it.edit("a.x", "sum\n") == ""
        it.speak(count=1)  # what the edit broke in the other file, when the next edit has mended it
        assert await it.edit("a.x", "total\n") == ""
        assert it.late() == ""
        it.speak()
        await quiet(it)
        assert it.late() == ""


async def test_quick_edits_wait_less_for_a_server_that_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "held") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        (tracker,) = it.languages.trackers.values()
        assert tracker.miss_count == 0
        with monkeypatch.context() as short:
            wait(short, 100)
            for number in range(3):
                await it.edit("a.x", f"two {number}\n")
        assert tracker.miss_count == 3
        it.speak()
        await quiet(it)
        await it.edit("b.x", "new\n")
        await quiet(it)
        assert tracker.miss_count == 0, "it answers again"


async def test_what_comes_late_is_in_the_next_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "held") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        with monkeypatch.context() as short:
            wait(short, 300)
            assert await it.edit("a.x", "bad1\n") == ""
        assert it.seconds < HANGS
        it.speak()
        await quiet(it)
        assert (
            await it.edit("b.x", "fine\n") == "1 new error:\na.x:1: bad1 is not good (scripted B1)"
        )


async def test_what_comes_late_is_told_once_and_never_of_a_text_that_is_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "held") as it:
        await it.edit("a.x", "one\n")
        await quiet(it)
        wait(monkeypatch, 300)
        await it.edit("a.x", "bad1\n")
        assert it.late() == ""
        it.speak()
        await quiet(it)
        (it.root / "a.x").write_text("mended beside us\n")
        assert it.late() == ""
        (it.root / "a.x").write_text("bad1\n")
        assert it.late() == "Late: 1 new error:\na.x:1: bad1 is not good (scripted B1)"
        assert it.late() == ""


async def test_warnings_are_told_where_that_is_wanted(tmp_path: Path) -> None:
    for shows, expected in (
        (None, ""),
        (True, "1 new warning:\na.x:2: warning: meh1 is not good (scripted B1)"),
    ):
        (tmp_path / str(shows)).mkdir()
        async with world(tmp_path / str(shows), warnings=shows) as it:
            await it.edit("a.x", "one\n")
            assert await it.edit("a.x", "one\nmeh1\n") == expected


async def test_an_error_in_a_file_that_nobody_read_is_told(tmp_path: Path) -> None:
    async with world(tmp_path, "uses") as it:
        (it.root / "a.x").write_text("total\n")
        (it.root / "b.x").write_text("call a a.total\n")
        assert await it.edit("a.x", "total more\n") == ""
        assert (
            await it.edit("a.x", "sum more\n")
            == "1 new error:\nb.x:1: bad_total is not good (scripted B1)"
        )


async def test_a_server_that_says_nothing_of_files_without_errors_is_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnostics_tracker, "_ASSUME_CLEAN_SECONDS", 0.3)
    wait(monkeypatch, 300)
    async with world(tmp_path, "silent") as it:
        (it.root / "a.x").write_text("one\n")
        await it.edit("a.x", "two\n")
        async with asyncio.timeout(60):
            while not (found := await it.edit("a.x", "bad1\n")):
                pass
        assert "bad1" in found


async def test_a_deleted_file_is_closed(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert "bad1" in await it.edit("a.x", "bad1\n")
        assert await it.edit("a.x", None) == ""
        await quiet(it)
        assert it.server.client is not None
        assert it.server.client.documents == {}


async def test_a_file_that_no_server_serves_starts_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        assert await it.edit("a.txt", "bad\n") == ""
        assert it.trace() == []


@pytest.mark.slow
async def test_a_server_that_crashes_three_times_is_given_up_and_said(tmp_path: Path) -> None:
    async with world(tmp_path, "crash") as it:
        for number in range(5):
            await it.edit("a.x", f"one {number}\n")
            await it.edit("a.x", f"boom {number}\n")
            assert it.seconds < HANGS
            (it.root / "a.x").write_text("one\n")
        assert len(it.started()) == 3
        assert len(it.warned) == 1
        assert "is given up: it ended with exit code 7" in it.warned[0]
        assert it.server.state == "failed"
        await it.server.restart()
        assert "bad" in await it.edit("a.x", "bad\n")


async def test_a_server_that_hangs_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "hang") as it:
        await it.edit("a.x", "bad1\n")
        await quiet(it)
        wait(monkeypatch, 300)
        for number in range(3):
            assert await it.edit("a.x", f"boom {number}\n") == ""
            assert it.seconds < HANGS


async def test_a_server_that_never_greets_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait(monkeypatch, 300)
    async with world(tmp_path, "mute") as it:
        for number in range(2):
            assert await it.edit("a.x", f"bad {number}\n") == ""
            assert it.seconds < HANGS


@pytest.mark.slow
async def test_hundreds_of_thousands_of_diagnostics_hurt_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, "flood") as it:
        await it.edit("a.x", "one\n")
        wait(monkeypatch, 1_000)
        await it.edit("a.x", "boom\n")
        assert it.seconds < HANGS
        await quiet(it)


async def test_garbage_ends_a_server(tmp_path: Path) -> None:
    for order in ("garbage", "huge"):
        (tmp_path / order).mkdir()
        async with world(tmp_path / order, order, "greeting") as it:
            assert "bad1" in await it.edit("a.x", "bad1\n"), (
                "words before the first message are passed over"
            )
            assert await it.edit("a.x", "boom\n") == ""
            await quiet(it)
            assert any("failed: " in line for line in it.logs), it.logs


async def test_nothing_of_a_server_is_left(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        await it.edit("a.x", "one\n")
        (pid,) = it.started()
    assert not Path(f"/proc/{pid}").exists()


async def test_a_change_is_sent_as_what_changed(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        for text in (
            "a\r\nb😀\r\nc",
            "a\r\nb😀 bad1\r\nc",
            "bad1😀\nbad2",
            "bad1😀\nbad2 bad3\n",
            "",
            "bad4",
        ):
            await it.edit("a.x", text)
        assert (
            it.languages.collect_diagnostics([it.root / "a.x"])[str(it.root / "a.x")][0]["message"]
            == "bad4 is not good"
        )
