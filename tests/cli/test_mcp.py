"""`codeloop mcp` as a person types it, with a real server."""

import fcntl
import json
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.program import Desk, steps
from tests.cli.terminal import Terminal
from tests.cli.test_attach import stage
from tests.extend.mcp.remote import led_to, opened, serving
from tests.extend.mcp.world import PLAIN

SERVER = (sys.executable, str(PLAIN))


def configured(desk: Desk) -> dict[str, object]:
    return json.loads((desk.home / "config" / "codeloop.json").read_text()).get("mcp", {})


@pytest.mark.slow
def test_a_server_is_tried_added_shown_and_removed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    added = desk.run("mcp", "add", "p", "--env", "MINE=1", "--", *SERVER)
    assert added.stdout.startswith("p (plain 1) works: 25 tools: "), added.stderr
    assert configured(desk) == {
        "p": {"type": "local", "command": [*SERVER], "environment": {"MINE": "1"}}
    }
    listed = desk.run("mcp", "list", "--json")
    assert [(row["name"], row["state"], row["tools"]) for row in json.loads(listed.stdout)] == [
        ("p", "known", 25)
    ]
    again = desk.run("mcp", "add", "p", "--", *SERVER)
    assert (again.returncode, again.stderr.count("There is a server 'p' already")) == (2, 1)
    shown = desk.run("mcp", "debug", "p")
    assert "state: connected, over stdio, protocol 2025-06-18" in shown.stdout
    assert "- echo: Does echo." in shown.stdout
    removed = desk.run("mcp", "remove", "p")
    assert removed.stdout.startswith("Removed p from ")
    assert configured(desk) == {}


@pytest.mark.slow
def test_a_server_that_was_never_started_is_not_said_to_have_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    server = {"type": "local", "command": [*SERVER], "cwd": str(desk.work), "sandbox": False}
    desk.configure(share="disabled", mcp={"p": server})
    shown = desk.run("mcp", "debug", "p")
    assert (
        "You have not agreed to this yet, so a call asks first:\nIt runs without a sandbox"
        in shown.stdout
    )
    assert "used last" not in shown.stdout
    assert "have not agreed" not in desk.run("mcp", "debug", "p").stdout


@pytest.fixture(scope="module")
def oauth(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("oauth")
    with serving("oauth", str(folder)) as url:
        yield url, folder


def sign_in(desk: Desk) -> str:
    """Sign in without a terminal, in a browser of this machine. Returns what the command says."""
    running = desk.start("mcp", "auth", "p", "--no-browser")
    assert running.stdout is not None
    assert running.stdout.readline() == "Open this address to sign in:\n"
    opened(running.stdout.readline().strip())
    said, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    return said


@pytest.mark.slow
def test_a_person_signs_in_and_out(tmp_path: Path, oauth: tuple[str, Path]) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    added = desk.run("mcp", "add", "p", oauth[0])
    assert added.stdout.startswith("p wants you to sign in: run `codeloop mcp auth p`"), (
        added.stderr
    )

    def listed() -> tuple[str, str]:
        row = json.loads(desk.run("mcp", "list", "--json").stdout)[0]
        return row["state"], row["reason"]

    assert listed() == ("needs_auth", "run `codeloop mcp auth p`")
    assert sign_in(desk) == "Signed in. p (packaged) works: 3 tools: add, steps, header\n"
    assert listed() == ("known", "")
    out = desk.run("mcp", "logout", "p")
    assert out.stdout == "Signed out at p; its provider has ended the sign-in.\n"
    assert listed() == ("needs_auth", "run `codeloop mcp auth p`")
    again = desk.run("mcp", "logout", "p")
    assert (again.returncode, "You are not signed in at p." in again.stderr) == (1, True)


@pytest.mark.slow
def test_a_person_signs_in_from_a_conversation_that_is_attached(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    mcp = {
        "p": {"type": "remote", "url": oauth[0]},
        "none": {"type": "local", "command": ["false"]},
    }
    with stage(tmp_path, steps(), mcp=mcp) as it:
        terminal = Terminal(it.desk, "attach", it.url)
        terminal.wait_for("/help lists the commands")
        terminal.type("/mcp")
        terminal.wait_for("p: configured")
        terminal.type("/mcp auth none")
        terminal.wait_for("none is a program, not a server that one signs in at")
        terminal.type("/mcp auth p")
        shown = terminal.wait_for("ADDRESS-THAT-IT-ENDS-AT")
        address = re.search(r"http://\S+/authorize\S+", re.sub(r"\s*\r?\n", "\n", shown))
        assert address is not None
        terminal.type(f"/mcp auth p {led_to(address.group())}")
        terminal.wait_for("p: connected")
        terminal.type("/exit")


@pytest.mark.slow
def test_of_five_processes_that_renew_at_once_one_does(
    tmp_path: Path, oauth: tuple[str, Path]
) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled", mcp={"p": {"type": "remote", "url": oauth[0]}})
    sign_in(desk)
    file = desk.home / "data" / "mcp-auth.json"
    entry = json.loads(file.read_text())
    entry["p"]["expires"] = 1
    file.write_text(json.dumps(entry))
    renewed = oauth[1] / "renewed"
    before = len(renewed.read_text()) if renewed.exists() else 0
    running = [desk.start("mcp", "debug", "p") for _ in range(5)]
    for each in running:
        said, errors = each.communicate(timeout=120)
        assert "state: connected" in said, errors
    assert len(renewed.read_text()) - before == 1


@pytest.mark.slow
def test_a_server_that_does_not_work_is_not_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    done = desk.run("mcp", "add", "bad", "--", "sh", "-c", "echo my reason >&2; exit 7")
    assert done.returncode == 1
    assert "it ended with exit code 7; its last line: my reason" in done.stderr
    assert "Nothing was written." in done.stderr
    assert done.stderr.count("my reason") == 1
    again = desk.run(
        "mcp", "add", "bad", "--", "sh", "-c", "echo another >&2; echo reason >&2; exit 7"
    )
    assert "my reason" not in again.stderr
    assert again.stderr.count("another") == 1
    assert not (desk.home / "config" / "codeloop.json").exists()


@pytest.mark.slow
def test_of_several_servers_none_is_added_when_one_fails(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    works = {"command": SERVER[0], "args": [SERVER[1]]}
    fails = {"command": "sh", "args": ["-c", "exit 7"]}
    done = desk.run("mcp", "add", json.dumps({"mcpServers": {"works": works, "fails": fails}}))
    assert done.returncode == 1
    assert "works (plain 1) works: 25 tools: " in done.stdout
    assert "Nothing was written." in done.stderr
    assert not (desk.home / "config" / "codeloop.json").exists()
    both = desk.run("mcp", "add", json.dumps({"mcpServers": {"works": works, "again": works}}))
    assert both.returncode == 0, both.stderr
    assert [*configured(desk)] == ["works", "again"]


def added(desk: Desk, *words: str, code: int = 0, **environment: str) -> str:
    """Add a server without trying it; return what is said."""
    done = desk.run("mcp", "add", *words, "--no-try", **environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_people_paste_is_taken(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    added(desk, "plain", "npx", "-y", "@scope/server-plain", ".")
    added(
        desk,
        '{"mcpServers": {"one": {"command": "npx", "args": ["one"]}, "two": {"url": "https://b"}}}',
    )
    assert configured(desk) == {
        "plain": {"type": "local", "command": ["npx", "-y", "@scope/server-plain", "."]},
        "one": {"type": "local", "command": ["npx", "one"]},
        "two": {"type": "remote", "url": "https://b"},
    }
    placeholder = ("a", "https://b", "--header", "Authorization: Bearer <your-token>")
    assert "or {env:YOUR_TOKEN} to take it" in added(desk, *placeholder, code=2)
    assert "For an address there is --header" in added(
        desk, "a", "https://b", "--env", "A=b", code=2
    )


def test_a_server_that_is_written_but_not_trusted_is_said_to_be_written(tmp_path: Path) -> None:
    desk = Desk(tmp_path, limits={"TRUST_LOCK": 60})
    assert desk.run("trust").returncode == 0
    holder = os.open(desk.home / "state", os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    said = added(desk, "plain", "https://a", "--project", code=1)
    os.close(holder)
    file = desk.work / "codeloop.json"
    assert "plain" in json.loads(file.read_text())["mcp"]
    assert (
        f"{file} is written, but the change is not trusted: Another process holds the lock on "
        in said
    )
    assert said.endswith("Trust it: codeloop trust\n")
    assert "Nothing was changed" not in said


@pytest.mark.slow
def test_a_variable_is_put_in_when_a_server_is_tried(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(share="disabled")
    done = desk.run("mcp", "add", "p", "--env", "MINE={env:MY_VALUE}", "--", *SERVER, MY_VALUE="1")
    assert done.returncode == 0, done.stderr
    assert configured(desk)["p"] == {
        "type": "local",
        "command": [*SERVER],
        "environment": {"MINE": "{env:MY_VALUE}"},
    }
    unset = desk.run("mcp", "add", "q", "--env", "MINE={env:NOT_THERE}", "--", *SERVER)
    assert (unset.returncode, "The variable NOT_THERE is not set" in unset.stderr) == (1, True)


def test_servers_of_other_programs_are_taken_over_when_asked_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / ".mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {"command": "npx", "args": ["-y", "a"], "env": {"KEY": "${A_KEY}"}}
                }
            }
        )
    )
    (desk.work / ".vscode").mkdir()
    (desk.work / ".vscode" / "mcp.json").write_text(
        '// comments\n{"servers": {"b": {"type": "http", "url": "https://b.example/mcp"},'
        ' "i": {"command": "${input:x}"}}}'
    )
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text('{"mcpServers": {"c": {"command": "c"}}}')
    (tmp_path / ".claude.json").write_text(
        json.dumps({"projects": {str(desk.work): {"mcpServers": {"d": {"command": "d"}}}}})
    )
    seen = desk.run("mcp", "import")
    assert [line.partition(":")[0] for line in seen.stdout.splitlines()] == [
        "a",
        "d",
        "c",
        "b",
        "i",
    ]
    assert not (desk.home / "config" / "codeloop.json").exists()
    desk.run("mcp", "import", "a", "b")
    assert configured(desk) == {
        "a": {
            "type": "local",
            "command": ["npx", "-y", "a"],
            "environment": {"KEY": "{env:A_KEY}"},
        },
        "b": {"type": "remote", "url": "https://b.example/mcp"},
    }
    rest = desk.run("mcp", "import", "--all")
    assert "a: npx -y a" in rest.stdout
    assert set(configured(desk)) == {"a", "b", "c", "d"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--env", "=v", "--", "true"), "'=v' has no name: write NAME=VALUE"),
        (("--env", "A-B", "--", "true"), "'A-B' has no value: write NAME=VALUE"),
        (("--header", ": v", "http://127.0.0.1:1/"), "': v' has no name: write NAME:VALUE"),
    ],
)
def test_an_option_without_a_name_or_a_value_is_refused(
    tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    done = Desk(tmp_path).run("mcp", "add", "p", "--no-try", *words)
    assert done.returncode == 2
    assert reason in done.stderr
