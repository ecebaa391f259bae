"""`codeloop serve`, as a process: what it prints, whom it refuses, what it leaves behind."""

import asyncio
import json
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from codeloop.config.paths import find_paths
from codeloop.config.server_credential import find_credential
from codeloop.schema.bounds.server import SERVER_SIGNAL
from tests.cli.program import COMMAND, UNCONFINED, Desk, bash, lives, serving, without_privileges
from tests.faults.test_kill import wait_for
from tests.server.support.raw import Answered, ask, basic, port_of, request
from tests.support.answers import Answer
from tests.support.free_port import find_free_port

READY = re.compile(r"opencode server listening on (http://\S+)\n")
SAID = json.dumps({"parts": [{"type": "text", "text": "go"}]})


@dataclass
class Running:
    """A server's process."""

    desk: Desk
    process: subprocess.Popen[str]
    url: str

    def ask(
        self, method: str, path: str, *lines: str, body: str = "", host: str | None = ""
    ) -> Answered:
        more = ("content-type: application/json", f"content-length: {len(body)}") if body else ()
        data = request(self.url, method, path, *lines, *more, host=host) + body.encode()
        return asyncio.run(ask(self.url, data))

    def own(self) -> str:
        """Return the header with the credential that this machine's programs find."""
        found = find_credential(find_paths({"CODELOOP_HOME": str(self.desk.home)}), self.url, {})
        assert found is not None
        return basic(found.password, found.username)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        """End it by a signal; return its exit code and what else it printed."""
        self.process.send_signal(number)
        stdout, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, stdout, stderr


@contextmanager
def running(desk: Desk, *arguments: str, **environment: str) -> Generator[Running]:
    named = any(argument.startswith("--port") for argument in arguments)
    process = desk.start("serve", *(() if named else ("--port=0",)), *arguments, **environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = READY.fullmatch(line)
        assert ready, (line, process.communicate(timeout=60))
        yield Running(desk, process, ready.group(1))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def credentials(desk: Desk) -> list[Path]:
    return sorted((desk.home / "state" / "server").glob("*.json"))


def log_of(desk: Desk) -> str:
    return (desk.home / "data" / "log" / "server.log").read_text()


@pytest.mark.slow
def test_it_says_where_it_listens_and_keeps_the_password_to_its_owner(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with running(desk) as server:
        (file,) = credentials(desk)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        kept = json.loads(file.read_text())
        assert (kept["url"], kept["username"], kept["pid"]) == (
            server.url,
            "opencode",
            server.process.pid,
        )
        assert len(kept["password"]) > 40
        assert server.ask("GET", "/session").status == 401
        assert server.ask("GET", "/session", server.own()).status == 200
        code, stdout, stderr = server.end()
        assert (code, stdout) == (0, "")
        assert f"codeloop attach {server.url}" in stderr
        assert str(file) in stderr
        assert kept["password"] not in stderr + log_of(desk)
        assert "Traceback" not in stderr + log_of(desk)
        assert credentials(desk) == []


def test_every_flag_is_explained(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"--[a-z-]+", Desk(tmp_path).run("serve", "--help").stdout)) - {"--help"}
    assert {flag for flag in flags if f"`{flag}`" not in page and f"`{flag} " not in page} == set()
    assert "--cors" in flags


@pytest.mark.slow
def test_it_is_started_as_other_launchers_start_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    content = json.dumps({"logLevel": "DEBUG", "username": "from the environment"})
    arguments = ("--hostname=127.0.0.1", "--port=0", "--log-level=DEBUG")
    with running(
        desk, *arguments, OPENCODE_CONFIG_CONTENT=content, OPENCODE_SERVER_PASSWORD="theirs"
    ) as server:
        assert server.ask("GET", "/session", basic("theirs")).status == 200
        assert (
            json.loads(server.ask("GET", "/config", basic("theirs")).body)["username"]
            == "from the environment"
        )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--hostname", "0.0.0.0"), "CODELOOP_SERVER_PASSWORD"),
        (("--hostname=::",), "CODELOOP_SERVER_PASSWORD"),
        (("--hostname", "0", "--no-password"), "CODELOOP_SERVER_PASSWORD"),
        (("--password", ""), "--password is empty"),
        (("--password", "x", "--no-password"), "contradict"),
        (("--cors", "*"), "is not an origin"),
        (("--port", "65536"), "65536"),
        (("--log-level", "loud"), "loud"),
    ],
)
def test_what_would_be_unsafe_or_makes_no_sense_does_not_start(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = Desk(tmp_path).run("serve", "--port=0", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_configuration_can_not_open_it_to_other_machines_either(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(server={"hostname": "0.0.0.0"})
    done = desk.run("serve", "--port=0")
    assert (done.returncode, done.stdout) == (2, "")
    with running(desk, CODELOOP_SERVER_PASSWORD="a long one") as server:
        assert server.url.startswith("http://0.0.0.0:")
        assert server.ask("GET", "/session").status == 401
        assert server.ask("GET", "/session", basic("a long one")).status == 200


@pytest.mark.slow
def test_an_untrusted_project_configures_nothing_of_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    wanted = {"hostname": "0.0.0.0", "port": 1, "cors": ["https://evil.example"]}
    (desk.work / "opencode.json").write_text(json.dumps({"server": wanted}))
    with running(desk) as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert (
            server.ask("GET", "/session", server.own(), "origin: https://evil.example").status
            == 403
        )
        _, _, stderr = server.end()
        assert "server" in next(line for line in stderr.splitlines() if "Ignored" in line)
    assert desk.run("serve", "--port=0", "--trust").returncode == 2, (
        "trusted: it counts, and needs a password"
    )


@pytest.mark.slow
def test_trust_given_at_the_start_holds_for_its_own_directory_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = tmp_path / "other"
    for folder in (desk.work, other):
        folder.mkdir(exist_ok=True)
        (folder / "opencode.json").write_text(json.dumps({"username": f"of {folder.name}"}))
    with running(desk, "--trust") as server:
        assert json.loads(server.ask("GET", "/config", server.own()).body)["username"] == "of work"
        elsewhere = json.loads(server.ask("GET", f"/config?directory={other}", server.own()).body)
        assert elsewhere.get("username") != "of other"


@pytest.mark.slow
def test_pages_are_configured_by_flag_and_by_configuration(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(server={"cors": ["https://one.example", "*"]})
    with running(
        desk, "--cors", "https://two.example/", "--cors=http://localhost:3000", "--no-password"
    ) as server:
        for origin in ("https://one.example", "https://two.example", "http://localhost:3000"):
            assert (
                server.ask("GET", "/session", f"origin: {origin}").headers[
                    "access-control-allow-origin"
                ]
                == origin
            )
        assert server.ask("GET", "/session", "origin: https://three.example").status == 403
        assert credentials(desk) == []
        _, _, stderr = server.end()
        assert "'*' is not an origin" in stderr


@pytest.mark.slow
def test_passwords_come_from_flag_then_our_variable_then_theirs(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    variables = {"CODELOOP_SERVER_PASSWORD": "ours", "OPENCODE_SERVER_PASSWORD": "theirs"}
    variables |= {"OPENCODE_SERVER_USERNAME": "somebody"}
    with running(desk, "--password", "flag", **variables) as server:
        assert server.ask("GET", "/session", basic("flag", "somebody")).status == 200
        assert server.ask("GET", "/session", basic("ours", "somebody")).status == 401
    with running(desk, **variables) as server:
        assert server.ask("GET", "/session", basic("ours", "somebody")).status == 200
        assert server.ask("GET", "/session", basic("theirs", "somebody")).status == 401


@pytest.mark.slow
def test_what_a_killed_server_left_is_not_used_and_goes_with_the_next(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    paths = find_paths({"CODELOOP_HOME": str(desk.home)})
    with running(desk, f"--port={find_free_port()}") as first, running(desk) as second:
        assert len(credentials(desk)) == 2
        assert first.own() != second.own()
        first.process.kill()
        first.process.wait(60)
        assert len(credentials(desk)) == 2, "nothing could remove it"
        assert find_credential(paths, first.url, {}) is None
        assert second.ask("GET", "/session", second.own()).status == 200
        with running(desk, f"--port={port_of(first.url)}") as third:
            assert len(credentials(desk)) == 2
            assert third.url == first.url
            assert third.ask("GET", "/session", third.own()).status == 200


@pytest.mark.slow
def test_the_usual_port_gives_way_a_named_one_does_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with running(desk) as server:
        port = port_of(server.url)
        done = desk.run("serve", f"--port={port}")
        assert done.returncode == 1
        assert f"Can't listen on 127.0.0.1:{port}" in done.stderr
        assert len(credentials(desk)) == 1
        assert server.ask("GET", "/session", server.own()).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_turn_stream_and_child_and_the_exit_code_is_zero(
    tmp_path: Path, number: signal.Signals
) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _: bash("echo $$ > pid; exec sleep 300")) as model:
        desk.use(model, **UNCONFINED)
        with running(desk) as server:
            own = server.own()
            session_id = json.loads(server.ask("POST", "/session", own, body="{}").body)["id"]
            assert (
                server.ask("POST", f"/session/{session_id}/prompt_async", own, body=SAID).status
                == 204
            )
            pid = wait_for_number(desk.work / "pid")
            stream = subprocess.Popen(
                ["curl", "-sN", "-H", own, f"{server.url}/global/event"],
                stdout=subprocess.PIPE,
                text=True,
            )
            assert stream.stdout is not None
            assert "server.connected" in stream.stdout.readline() + stream.stdout.readline()
            code, stdout, stderr = server.end(number)
            assert (code, stdout) == (0, "")
            assert "Traceback" not in stderr + log_of(desk)
            assert not lives(pid)
            assert stream.wait(60) == 0, "the stream ended as a whole answer"


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    # The first signal alone would take a minute, since the command does not end by itself.
    desk = Desk(tmp_path, limits={"SHELL_TERM_TIME": 60_000})
    with serving(
        lambda _: bash("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    ) as model:
        desk.use(model, **UNCONFINED)
        with running(desk) as server:
            own = server.own()
            session_id = json.loads(server.ask("POST", "/session", own, body="{}").body)["id"]
            server.ask("POST", f"/session/{session_id}/prompt_async", own, body=SAID)
            pid = wait_for_number(desk.work / "pid")
            server.process.send_signal(signal.SIGTERM)
            wait_for(lambda: not credentials(desk))  # it has been taken
            time.sleep(SERVER_SIGNAL.seconds + 0.05)
            code, _, stderr = server.end(signal.SIGINT)
            assert code == 130
            assert "Traceback" not in stderr
            wait_for(lambda: not lives(pid))  # the command does not outlive the server
            assert credentials(desk) == []


@pytest.mark.slow
def test_one_signal_that_arrives_twice_is_one(tmp_path: Path) -> None:
    with running(Desk(tmp_path)) as server:
        # So that both are there when it goes on, however late that is.
        server.process.send_signal(signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGINT)
        assert server.end(signal.SIGCONT)[0] == 0


def wait_for_number(file: Path) -> int:
    """Wait until a process has written its id."""
    wait_for(lambda: file.exists() and file.read_text().strip())
    return int(file.read_text())


@pytest.mark.slow
def test_it_works_without_standard_streams(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *COMMAND, "serve", "--port=0"],
        **desk.options(),
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not credentials(desk):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        url = json.loads(credentials(desk)[0].read_text())["url"]
        found = find_credential(find_paths({"CODELOOP_HOME": str(desk.home)}), url, {})
        assert found is not None
        answer = asyncio.run(ask(url, request(url, "GET", "/session", basic(found.password))))
        assert answer.status == 200
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.slow
def test_a_launcher_that_goes_away_does_not_end_it(tmp_path: Path) -> None:
    with running(Desk(tmp_path)) as server:
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        server.process.stdout.close()
        server.process.stderr.close()
        assert server.ask("GET", "/session", server.own()).status == 200
        assert server.ask("GET", "/session", basic("wrong")).status == 401
        server.process.terminate()
        assert server.process.wait(60) == 0
        server.process.stdout = server.process.stderr = None


@pytest.mark.slow
def test_the_log_says_who_was_refused_and_holds_no_secret(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with running(desk, "--password", "our-own-secret") as server:
        server.ask("GET", "/session?auth_token=a-guessed-token", host="evil.example")
        server.ask("GET", "/session?auth_token=a-guessed-token")
        server.ask("GET", "/session", basic("a-guessed-password"))
        server.ask("GET", "/session", basic("our-own-secret"))
        server.end()
    text = log_of(desk)
    assert "refused 421: GET /session from 127.0.0.1, for the host evil.example" in text
    assert text.count("refused 401: GET /session from 127.0.0.1, with a wrong credential") == 2
    assert f"listening on {server.url}" in text
    assert "stopped" in text
    for secret in (
        "guessed",
        "our-own-secret",
        basic("a-guessed-password").split()[-1],
        "auth_token",
    ):
        assert secret not in text
    assert stat.S_IMODE((desk.home / "data" / "log" / "server.log").stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_log_that_can_not_be_written_stops_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, wrapper=without_privileges())
    folder = desk.home / "data" / "log"
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    with running(desk) as server:
        assert server.ask("GET", "/session").status == 401
        assert server.ask("GET", "/session", server.own()).status == 200
        code, _, stderr = server.end()
        assert code == 0
        assert "Traceback" not in stderr
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_random_password_that_can_not_be_told_is_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path, wrapper=without_privileges())
    (desk.home / "state").mkdir(parents=True)
    (desk.home / "state").chmod(0o500)
    done = desk.run("serve", "--port=0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CODELOOP_SERVER_PASSWORD" in done.stderr
    with running(desk, CODELOOP_SERVER_PASSWORD="mine") as server:
        assert server.ask("GET", "/session", basic("mine")).status == 200


@pytest.mark.slow
def test_commands_of_the_agent_do_not_see_the_password(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(lambda _: bash("env > seen; echo done > pid; sleep 0")) as model:
        desk.use(model, permission={"*": "allow"})
        with running(
            desk,
            CODELOOP_SERVER_PASSWORD="a-long-password-of-mine",
            COPY="x a-long-password-of-mine",
        ) as server:
            own = basic("a-long-password-of-mine")
            session_id = json.loads(server.ask("POST", "/session", own, body="{}").body)["id"]
            server.ask("POST", f"/session/{session_id}/prompt_async", own, body=SAID)
            wait_for((desk.work / "pid").exists)
    assert "a-long-password-of-mine" not in (desk.work / "seen").read_text()


def listening(pid: int) -> list[str]:
    """Return the sockets on which a process listens."""
    inodes: set[str] = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(link.readlink()))
        except OSError:
            continue
    rows: list[str] = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        for row in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]:
            fields = row.split()
            if f"socket:[{fields[9]}]" in inodes and fields[3] == (
                "0A" if name.startswith("tcp") else "07"
            ):
                rows.append(fields[1])
    return rows


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_run_opens_no_port_and_a_server_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving([Answer(hang=60)]) as model:
        desk.use(model)
        process = desk.start("run", "--title", "T", "hello")
        try:
            wait_for(lambda: model.requests)
            assert listening(process.pid) == []
        finally:
            process.kill()
            process.communicate(timeout=60)
    with running(desk) as server:
        assert len(listening(server.process.pid)) == 1


@pytest.mark.slow
def test_the_link_for_the_browser_is_in_no_argument_of_a_program(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\ncat /proc/[0-9]*/cmdline > {tmp_path}/processes 2>/dev/null\nprintf "%s" "$1" > {tmp_path}/asked\n'
        f'stat -c "%a" "${{1#file://}}" "$(dirname "${{1#file://}}")" > {tmp_path}/modes\n'
        f'cat "${{1#file://}}" > {tmp_path}/page\nmv {tmp_path}/page {tmp_path}/read\n'
    )
    browser.chmod(0o755)
    process = desk.start("web", "--port=0", BROWSER=f"{browser} %s")
    try:
        wait_for((tmp_path / "read").exists)
        link = re.search(r'url=(http://[^"]+#link=[^"]+)"', (tmp_path / "read").read_text())
        assert link is not None
        assert (tmp_path / "asked").read_text().startswith("file:///")
        assert (
            link[1].partition("=")[2]
            not in (tmp_path / "asked").read_text() + (tmp_path / "processes").read_text()
        )
        assert (tmp_path / "modes").read_text().split() == ["600", "700"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert link[1] in stderr
    assert not Path((tmp_path / "asked").read_text().removeprefix("file://")).exists()
