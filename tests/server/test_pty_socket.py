"""Terminals over real WebSockets, with real programs."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from codeloop.kit.processes import list_processes
from codeloop.schema.bounds.server import PTY_KEPT
from tests.server.support.screen import DEADLINE, connected, gone, opened, refused, script
from tests.server.support.serving import PASSWORD, Served, served


async def test_a_terminal_is_opened_listed_renamed_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        made = await it.post("/pty", {"command": "cat", "title": "mine"})
        assert made == {
            "id": made["id"],
            "title": "mine",
            "command": "cat",
            "args": [],
            "cwd": str(it.work),
            "status": "running",
            "pid": made["pid"],
        }
        assert await it.get("/pty") == [made]
        other = await it.post("/pty", {"command": "/bin/sh", "cwd": "/"})
        assert (other["title"], other["args"], other["cwd"]) == (
            f"Terminal {other['id'][-4:]}",
            ["-l"],
            "/",
        )
        answer = await it.http.put(
            f"/pty/{made['id']}", json={"title": "yours", "size": {"rows": 9, "cols": 9}}
        )
        assert answer.json() == await it.get(f"/pty/{made['id']}") == {**made, "title": "yours"}
        assert (await it.http.delete(f"/pty/{made['id']}")).json() is True
        assert [each["id"] for each in await it.get("/pty")] == [other["id"]]
        missing = {"_tag": "PtyNotFoundError", "ptyID": made["id"]}
        for answer in (
            await it.http.get(f"/pty/{made['id']}"),
            await it.http.put(f"/pty/{made['id']}", json={}),
            await it.http.delete(f"/pty/{made['id']}"),
        ):
            assert answer.status_code == 404
            assert missing.items() <= answer.json().items()


@pytest.mark.parametrize(
    "body",
    [
        {"command": "no-such-program"},
        {"cwd": "nowhere"},
        {"title": "x" * 10_000},
        {"command": "a\0b"},
        {"cwd": "x" * 5_000},
        {"command": "cat", "args": ["x" * 5_000_000]},
        {"command": 7},
        {"env": {"A=": "b"}},
    ],
)
async def test_what_can_not_be_opened_is_the_clients_error(tmp_path: Path, body: Any) -> None:
    async with served(tmp_path) as it:
        await it.post("/pty", body, status=400)
        assert await it.get("/pty") == []


@pytest.mark.parametrize(
    "size", [{"rows": 0, "cols": 5}, {"rows": 5, "cols": 65536}, {"rows": -1, "cols": 5}, {}, 5]
)
async def test_a_size_that_is_none_is_the_clients_error(tmp_path: Path, size: Any) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        assert (await it.http.put(f"/pty/{pty_id}", json={"size": size})).status_code == 400


async def test_input_goes_in_as_text_or_bytes_and_output_comes_as_text(tmp_path: Path) -> None:
    async with served(tmp_path) as it, connected(it, await opened(it, "cat")) as screen:
        assert screen.cursors == [0]
        await screen.socket.send("h\u00e9llo\n")
        await screen.until("h\u00e9llo\r\nh\u00e9llo\r\n")
        await screen.socket.send("w\u00f6rld\n".encode())
        await screen.until("w\u00f6rld\r\nw\u00f6rld\r\n")


async def test_a_resize_reaches_the_program(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(it, "while read -r line; do stty size; done")
        await it.http.put(f"/pty/{pty_id}", json={"size": {"rows": 33, "cols": 101}})
        async with connected(it, pty_id) as screen:
            await screen.socket.send("\n")
            await screen.until("33 101")


async def test_ctrl_c_interrupts(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(
            it, "trap : INT; sh -c 'echo begun; exec sleep 60'; echo ended $?; read -r x"
        )
        async with connected(it, pty_id) as screen:
            await screen.until("begun")
            await screen.socket.send("\x03")
            await screen.until("ended 130")


async def test_a_late_client_gets_what_it_lacks(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        async with connected(it, pty_id) as first:
            await first.socket.send("one\U0001f600\n")
            await first.until("one\U0001f600\r\none\U0001f600\r\n")
            whole, end = first.text, 14
            for query, replay in (
                ("", whole),
                ("?cursor=0", whole),
                ("?cursor=7", whole[6:]),
                ("?cursor=-1", ""),
            ):
                async with connected(it, pty_id, query) as late:
                    assert (late.replay, late.cursors) == (replay, [end])
            async with connected(it, pty_id, "?cursor=-1") as late:
                await late.socket.send("two\n")
                for screen in (first, late):
                    await screen.until("two\r\ntwo\r\n")
                assert late.text == "two\r\ntwo\r\n"


@pytest.mark.parametrize("cursor", ["x", "-2", "1.5", "9" * 5000, "%C2%B2"])
async def test_a_cursor_that_is_none_is_the_clients_error(tmp_path: Path, cursor: str) -> None:
    async with served(tmp_path) as it:
        status, body = await refused(it, await opened(it, "cat"), f"?cursor={cursor}")
        assert (status, body["name"]) == (400, "BadRequest")


async def test_the_end_of_the_program_closes_every_client_after_the_last_output(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(it, "read -r go; echo bye; exit 3")
        async with connected(it, pty_id) as one, connected(it, pty_id) as two:
            await one.socket.send("go\n")
            for screen in (one, two):
                assert await screen.end() == 1000
                assert screen.text == "go\r\nbye\r\n"
        await gone(it, pty_id)
        assert (await refused(it, pty_id))[0] == 404


async def test_removing_closes_the_clients(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        async with connected(it, pty_id) as screen:
            await it.http.delete(f"/pty/{pty_id}")
            assert await screen.end() == 1000


async def test_a_client_that_leaves_is_no_loss(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        terminal = (await it.project()).workspace.terminals.get(pty_id)
        assert terminal
        for _ in range(3):
            async with connected(it, pty_id) as screen:
                screen.socket.transport.abort()
        async with connected(it, pty_id) as screen:
            await screen.socket.send("x\n")
            await screen.until("x\r\nx\r\n")
        async with asyncio.timeout(DEADLINE):
            while terminal._output._viewers:
                await asyncio.sleep(0.01)


async def test_bytes_that_are_no_text_are_shown_as_such(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(it, r"read -r go; head -c 200000 /dev/urandom; printf '\377 end\n'")
        async with connected(it, pty_id) as screen:
            await screen.socket.send("\n")
            assert await screen.end() == 1000
            assert screen.text.endswith("\ufffd end\r\n")
            assert len(screen.text) > 150_000


async def test_a_megabyte_is_pasted_without_loss(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(it, "stty raw -echo; echo ready; head -c 1000000 | cksum; read -r x")
        data = bytes(index * 7 % 251 for index in range(1000)) * 1000
        expected = await asyncio.to_thread(
            subprocess.run, ["cksum"], input=data, capture_output=True, check=True
        )
        async with connected(it, pty_id) as screen:
            await screen.until("ready")
            await screen.socket.send(data)
            await screen.until(expected.stdout.decode().strip())


def narrow(it: Served) -> socket.socket:
    """Connect with so little room that the kernel can't hold much of what is not read."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    url = httpx2.URL(it.url)
    made.connect((url.host, url.port))
    made.setblocking(False)
    return made


@pytest.mark.slow
async def test_who_types_more_than_a_program_reads_is_let_go(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await script(it, "stty raw -echo; echo ready; sleep 60")
        async with connected(it, pty_id) as screen, connected(it, pty_id) as other:
            await screen.until("ready")
            with contextlib.suppress(ConnectionClosed):  # it may be let go before the last of these
                for _ in range(6):
                    await screen.socket.send(b"x" * 1_000_000)
            assert await screen.end() == 1013
            await it.http.delete(f"/pty/{pty_id}")
            assert await other.end() == 1000, "others stay connected"


@pytest.mark.slow
async def test_a_slow_client_is_dropped_and_holds_nobody_up(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        line = "x" * 998
        lines = 4 * PTY_KEPT.value // 1000  # the kernel holds up to half of it for the slow client
        pty_id = await script(
            it, f"read -r go; yes {line} | head -n {lines}; echo done; read -r go"
        )
        async with connected(it, pty_id, sock=narrow(it)) as slow, connected(it, pty_id) as quick:
            slow.socket.transport.pause_reading()
            await quick.socket.send("go\n")
            await quick.until("done\r\n")
            assert quick.text == "go\r\n" + f"{line}\r\n" * lines + "done\r\n"
            slow.socket.transport.resume_reading()
            assert await slow.end() == 1013


@pytest.mark.slow
async def test_a_flood_does_not_keep_other_requests_waiting(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "yes")
        async with connected(it, pty_id) as screen:
            reading = asyncio.create_task(screen.end())
            for _ in range(5):
                await asyncio.wait_for(it.get("/pty"), DEADLINE)
                await asyncio.sleep(0.05)
            await it.http.delete(f"/pty/{pty_id}")
            assert await asyncio.wait_for(reading, DEADLINE) == 1000


async def test_a_plain_request_is_told_that_it_should_be_a_websocket(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        answer = await it.http.get("/pty/pty_none/connect")
        assert (answer.status_code, answer.json()["name"]) == (400, "BadRequest")


async def test_a_terminal_outlives_a_new_reading_of_the_configuration(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        pty_id = await opened(it, "cat")
        for _ in range(2):
            async with connected(it, pty_id) as screen:
                await it.post("/instance/dispose")
                assert [each["id"] for each in await it.get("/pty")] == [pty_id]
                await screen.socket.send("x\n")
                await screen.until("x\r\nx\r\n")
        await it.http.delete(f"/pty/{pty_id}")
        assert await it.get("/pty") == []


async def test_stopping_the_server_ends_connections_and_programs(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        made = await it.post("/pty", {"command": "/bin/sh"})
        async with connected(it, made["id"]) as screen:
            async with asyncio.timeout(DEADLINE):
                await it.server.stop()
            assert await screen.end() in {1000, 1001, 1012}
        assert made["pid"] not in {row.pid for row in list_processes()}


@contextlib.contextmanager
def program(tmp_path: Path) -> Any:
    """Run the real program, which prints nothing but its address; yield it and a client."""
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CODELOOP_HOME": str(tmp_path / "home"),
    }
    environment |= {"CODELOOP_DISABLE_MODELS_FETCH": "1", "OPENCODE_SERVER_PASSWORD": PASSWORD}
    command = [sys.executable, "-m", "codeloop", "serve", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout
            url = child.stdout.readline().rpartition(" on ")[2].strip()
            with httpx2.Client(
                base_url=url, auth=("opencode", PASSWORD), timeout=60, verify=False
            ) as http:
                yield child, http, work
        finally:
            child.kill()


@pytest.mark.slow
def test_nothing_outlives_a_killed_server(tmp_path: Path) -> None:
    left = (
        "sleep 600 & echo $! >> pids; setsid sh -c 'echo $$ >> pids; exec sleep 600' & "
        "nohup sh -c 'echo $$ >> pids; exec sleep 600' >/dev/null 2>&1 & "
        "sh -c \"trap '' HUP TERM INT; echo \\$\\$ >> pids; while :; do sleep 1; done\" & "
        "echo $$ >> pids; wait"
    )
    with program(tmp_path) as (child, http, work):
        answer = http.post("/pty", json={"command": "/usr/bin/env", "args": ["sh", "-c", left]})
        assert answer.status_code == 200, answer.text
        pids: set[int] = set()
        until = time.monotonic() + DEADLINE
        while len(pids) < 5:
            assert time.monotonic() < until
            time.sleep(0.02)
            pids = (
                {int(word) for word in (work / "pids").read_text().split()}
                if (work / "pids").exists()
                else set()
            )
        living = {row.pid for row in list_processes()} & pids
        assert living == pids
        os.kill(child.pid, signal.SIGKILL)
        until = time.monotonic() + DEADLINE
        while {row.pid for row in list_processes()} & pids:
            assert time.monotonic() < until, "a program outlived the server"
            time.sleep(0.05)
