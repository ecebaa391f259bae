"""Terminals with real programs: what they print, what is typed, how they end."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codeloop.kit.processes import list_processes
from codeloop.schema.api.pty import CreatePty
from codeloop.schema.bounds.server import (
    PTY_AHEAD,
    PTY_CLIENT_WAIT,
    PTY_COUNT,
    PTY_KEPT,
    PTY_WATCHERS,
)
from codeloop.schema.wire import replace
from codeloop.workspace.terminal import terminal_output
from codeloop.workspace.terminal.shell_choice import choose_program
from codeloop.workspace.terminal.terminal_output import ClientTooSlow, Viewer
from codeloop.workspace.terminal.terminals import Terminal, Terminals

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/sh", "LANG": "C.UTF-8"}
DEADLINE = 60


class Table:
    """Open terminals in a folder, and the exits that were heard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.terminals = Terminals()
        self.exits: dict[str, int] = {}

    async def open(self, *command: str, **environment: str) -> Terminal:
        asked = CreatePty(command=command[0], args=list(command[1:]), env=environment)
        return await self.terminals.open(
            choose_program(asked, self.folder, ENVIRONMENT), self._exited
        )

    async def script(self, text: str) -> Terminal:
        return await self.open("/usr/bin/env", "sh", "-c", text)

    def _exited(self, terminal: Terminal, code: int) -> None:
        self.exits[terminal.id] = code

    async def exit(self, terminal: Terminal) -> int:
        await until(lambda: terminal.id in self.exits)
        return self.exits[terminal.id]


@asynccontextmanager
async def table(folder: Path) -> AsyncGenerator[Table]:
    one = Table(folder)
    try:
        yield one
    finally:
        await one.terminals.close()


async def until(ready: object, deadline: float = DEADLINE) -> None:
    assert callable(ready)
    async with asyncio.timeout(deadline):
        while not ready():
            await asyncio.sleep(0.005)


class Seen:
    """What a client sees, as text that grows."""

    def __init__(self, watcher: Viewer) -> None:
        self.watcher = watcher
        self.text = "".join(watcher.replay())

    async def read(self) -> bool:
        more = await self.watcher.wait_for_output()
        self.text += more
        return bool(more)

    async def until(self, wanted: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while wanted not in self.text:
                assert await self.read(), f"the end came before {wanted!r}: {self.text[-500:]!r}"

    async def rest(self) -> str:
        async with asyncio.timeout(DEADLINE):
            while await self.read():
                pass
        return self.text


def living(*pids: int) -> set[int]:
    return {row.pid for row in list_processes()} & set(pids)


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def numbers(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()] if path.exists() else []


async def test_what_is_typed_reaches_the_program_and_what_it_prints_the_client(
    tmp_path: Path,
) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.open("cat")
        seen = Seen(terminal.watch())
        await terminal.send_input(b"hello\n")
        await seen.until("hello\r\nhello\r\n")
        assert terminal.info.status == "running"
        assert living(terminal.info.pid)


async def test_the_program_stands_in_the_directory_with_the_environment(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        seen = Seen(
            (
                await desk.open(
                    "/usr/bin/env",
                    "sh",
                    "-c",
                    'pwd; echo "$TERM $MINE"; tty; cut -d" " -f8 /proc/$$/stat',
                    MINE="x",
                )
            ).watch()
        )
        lines = (await seen.rest()).split("\r\n")
        assert lines[:2] == [str(tmp_path), "xterm-256color x"]
        assert lines[2].startswith("/dev/")
        assert int(lines[3]) > 0, "the terminal controls the session"


async def test_a_size_reaches_the_program(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script(
            "trap 'stty size' WINCH; stty size; while sleep 0.02; do :; done"
        )
        seen = Seen(terminal.watch())
        await seen.until("24 80")
        terminal.resize(50, 132)
        await seen.until("50 132")


async def test_ctrl_c_interrupts_what_runs(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script("trap : INT; sh -c 'echo begun; exec sleep 60'; echo ended $?")
        seen = Seen(terminal.watch())
        await seen.until("begun")
        await terminal.send_input(b"\x03")
        await seen.until("ended 130")


async def test_a_shell_has_job_control(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.open("/bin/sh")
        seen = Seen(terminal.watch())
        await terminal.send_input(b"sh -c 'echo b\"eg\"un; exec sleep 60'\n")
        await seen.until("begun")
        await terminal.send_input(b"\x1a")
        await seen.until("Stopped")


async def test_the_exit_is_told_with_its_code_after_the_last_output(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script("echo bye; exit 7")
        seen = Seen(terminal.watch())
        assert await desk.exit(terminal) == 7
        assert await seen.rest() == "bye\r\n"
        assert desk.terminals.get(terminal.id) is None
        assert not living(terminal.info.pid)


async def test_a_signal_counts_as_128_more(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script("kill -KILL $$")
        assert await desk.exit(terminal) == 128 + signal.SIGKILL


async def test_a_program_that_lets_go_of_its_terminal_can_take_it_up_again(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script(
            "exec <&- >&- 2>&-; sleep 0.2; echo again >/dev/tty; sleep 0.1"
        )
        assert await Seen(terminal.watch()).rest() == "again\r\n"
        assert await desk.exit(terminal) == 0


async def test_an_exit_ends_what_was_left_running(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script(
            "sleep 60 & echo $! > pids; setsid sh -c 'echo $$ >> pids; exec sleep 60' & "
            "until [ $(wc -l < pids) = 2 ]; do sleep 0.01; done"
        )
        await desk.exit(terminal)
        pids = numbers(tmp_path / "pids")
        assert len(pids) == 2
        assert not living(*pids)


@pytest.mark.parametrize(
    "left",
    [
        "sleep 60 & echo $! >> pids",
        "setsid sh -c 'echo $$ >> pids; exec sleep 60' &",
        "nohup sh -c 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 &",
        "sh -c \"trap '' TERM HUP INT; echo \\$\\$ >> pids; while :; do sleep 1; done\" &",
        "(setsid sh -c '(echo $$ >> pids; exec sleep 60) &' &)",
    ],
    ids=["background", "setsid", "nohup", "deaf", "orphan"],
)
async def test_removing_ends_every_process(tmp_path: Path, left: str) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.open("/bin/sh")
        await terminal.send_input(f"{left}\n".encode())
        await until(lambda: numbers(tmp_path / "pids"))
        pids = [*numbers(tmp_path / "pids"), terminal.info.pid]
        watcher = terminal.watch()
        assert living(*pids)
        assert await desk.terminals.remove(terminal.id)
        assert not living(*pids)
        await Seen(watcher).rest()
        assert desk.exits == {}, "nobody hears of an exit"
        assert not await desk.terminals.remove(terminal.id)


async def test_closing_ends_all_of_them_and_the_watcher_over_them(tmp_path: Path) -> None:
    before = {row.pid for row in list_processes() if row.parent == os.getpid()}
    one = Table(tmp_path)
    for _ in range(3):
        await one.open("/bin/sh")
    await one.terminals.close()
    assert {row.pid for row in list_processes() if row.parent == os.getpid()} <= before
    assert one.terminals.list_terminals() == ()


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        await desk.exit(await desk.script("true"))
        before = descriptors()
        for _ in range(5):
            await desk.exit(await desk.script("echo x"))
        for _ in range(5):
            await desk.terminals.remove((await desk.open("cat")).id)
        assert descriptors() <= before, "fewer if something older was freed"


async def test_a_late_client_gets_what_was_printed_from_its_cursor_on(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.open("cat")
        first = Seen(terminal.watch())
        await terminal.send_input(b"one\n")
        await first.until("one\r\none\r\n")
        assert first.watcher.position == 10
        for cursor, replay in (
            (None, "one\r\none\r\n"),
            (0, "one\r\none\r\n"),
            (5, "one\r\n"),
            (-1, ""),
            (99, ""),
        ):
            late = terminal.watch(cursor)
            assert "".join(late.replay()) == replay
            assert late.position == 10
            late.close()
        late = Seen(terminal.watch(5))
        await terminal.send_input(b"two\n")
        for seen in (first, late):
            await seen.until("two\r\ntwo\r\n")
        assert late.text == first.text[5:]


async def test_characters_that_are_split_and_bytes_that_are_none_are_shown(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script(
            r"printf 'a\303'; sleep 0.1; printf '\251b \360\237'; sleep 0.1; printf '\230\200 \377\376'"
        )
        assert await Seen(terminal.watch()).rest() == "a\u00e9b \U0001f600 \ufffd\ufffd"


async def test_half_a_character_at_the_end_is_shown_as_one_that_is_wrong(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        assert await Seen((await desk.script(r"printf 'a\303'")).watch()).rest() == "a\ufffd"


async def test_a_megabyte_is_typed_without_loss(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script(
            "stty raw -echo; echo ready; head -c 1048576 | cksum; sleep 0.05"
        )
        seen = Seen(terminal.watch())
        await seen.until("ready")
        data = bytes(index * 7 % 251 for index in range(1024)) * 1024
        await terminal.send_input(data)
        sum_of = await asyncio.create_subprocess_exec("cksum", stdin=-1, stdout=-1)
        expected, _ = await sum_of.communicate(data)
        assert expected.decode().strip() in await seen.rest()


async def test_a_program_that_reads_nothing_holds_up_only_who_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    async with table(tmp_path) as desk:
        terminal = await desk.script("stty raw -echo; echo ready; sleep 60")
        await Seen(terminal.watch()).until("ready")
        await terminal.send_input(b"x" * 5_000_000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await terminal.send_input(b"y")
        tries: list[bytes] = []
        monkeypatch.setattr(os, "write", lambda _, data: tries.append(data) or write(_, data))
        waiting = asyncio.create_task(terminal.send_input(b"y"))
        await asyncio.sleep(0.1)
        assert len(tries) < 5, "it is not polled"
        await desk.terminals.remove(terminal.id)
        await asyncio.wait_for(waiting, DEADLINE)


async def test_a_flood_leaves_time_for_others_and_keeps_only_the_newest(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        flood = await desk.open("yes", "0123456789")
        other = await desk.open("cat")
        seen = Seen(other.watch())
        await other.send_input(b"here\n")
        await seen.until("here\r\nhere")
        # it goes on while nobody looks
        await until(lambda: flood._output.scrollback.end > PTY_KEPT.value + PTY_AHEAD.value)
        late = flood.watch(0)
        assert sum(map(len, late.replay())) == PTY_KEPT.value


@pytest.mark.slow
async def test_a_program_waits_for_its_quickest_client_and_the_slow_one_is_dropped(
    tmp_path: Path,
) -> None:
    async with table(tmp_path) as desk:
        terminal = await desk.script("read -r go; yes | head -c 2000000; echo done; read -r go")
        slow, quick = terminal.watch(), terminal.watch()
        await terminal.send_input(b"go\n")
        text = ""
        async with asyncio.timeout(DEADLINE):
            while not text.endswith("done\r\n"):
                text += await quick.wait_for_output()
        assert text == "go\r\n" + "y\r\n" * 1_000_000 + "done\r\n"
        with pytest.raises(ClientTooSlow):
            await slow.wait_for_output()


@pytest.mark.slow
async def test_a_program_waits_for_a_client_only_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal_output, "PTY_CLIENT_WAIT", replace(PTY_CLIENT_WAIT, value=600_000))
    async with table(tmp_path) as desk:
        terminal = await desk.script("read -r go; yes | head -c 4000000; touch done; read -r go")
        stalled = terminal.watch()
        await terminal.send_input(b"go\n")
        await until(terminal._output.should_wait)
        await asyncio.sleep(0.3)
        assert not (tmp_path / "done").exists()
        assert terminal._output.scrollback.end - stalled.position < PTY_AHEAD.value + 300_000
        monkeypatch.setattr(terminal_output, "PTY_CLIENT_WAIT", replace(PTY_CLIENT_WAIT, value=200))
        await until((tmp_path / "done").exists)
        with pytest.raises(ClientTooSlow):
            await stalled.wait_for_output()


async def test_one_terminal_or_client_too_many_is_refused(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        terminals = [await desk.open("cat") for _ in range(PTY_COUNT.value)]
        with pytest.raises(ValueError, match="close one"):
            await desk.open("cat")
        watchers = [terminals[0].watch() for _ in range(PTY_WATCHERS.value)]
        with pytest.raises(ValueError, match="connected"):
            terminals[0].watch()
        watchers[0].close()
        terminals[0].watch()


async def test_arguments_that_the_system_does_not_take_leave_nothing_open(tmp_path: Path) -> None:
    async with table(tmp_path) as desk:
        await desk.exit(await desk.script("true"))
        before = descriptors()
        with pytest.raises(OSError, match="too long"):
            await desk.open("cat", "x" * 10_000_000)
        assert descriptors() <= before, "fewer if something older was freed"
        assert desk.terminals.list_terminals() == ()
