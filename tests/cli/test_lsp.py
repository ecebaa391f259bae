"""Language servers in the real program: errors in the results of edits, trust, their end,
`codeloop lsp`.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.cli.program import Desk, call, events, lives, serving, steps
from tests.lsp.world import SERVER
from tests.support.answers import Answer

DONE = Answer(text="Finished.")
PATIENT = {
    f"language_tools.LSP_{name}_TIME": 20_000
    for name in ("DIAGNOSTICS", "FIRST_DIAGNOSTICS", "OTHER_FILES", "DEPENDENT_FILES")
}
"""For edits whose results have to tell of all errors: on a busy machine, a server answers late."""


def write(text: str, number: int = 1) -> Answer:
    return call("write", call_id=f"w{number}", filePath="a.x", content=text)


def scripted(folder: Path, *orders: str) -> dict[str, Any]:
    traces = folder / "work" / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    # Wherever this repository is: what lies below /tmp is hidden in a sandbox.
    server = shutil.copy(SERVER, traces)
    return {
        "mine": {"command": [sys.executable, server, str(traces), *orders], "extensions": [".x"]}
    }


def trusted(folder: Path, limits: Mapping[str, int] = MappingProxyType({})) -> Desk:
    """A desk with a trusted project: the scripted server lies in it."""
    desk = Desk(folder, limits={**limits})
    desk.work.joinpath("codeloop.json").write_text("{}")
    assert desk.run("trust").returncode == 0
    return desk


def started(folder: Path) -> list[int]:
    trace = folder / "work" / "traces" / "trace"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("started")]


def outputs(stdout: str, tool: str) -> list[str]:
    parts = [event.get("part", {}) for event in events(stdout)]
    return [part["state"]["output"] for part in parts if part.get("tool") == tool]


@pytest.mark.slow
def test_a_run_sees_the_errors_that_its_edits_bring(tmp_path: Path) -> None:
    desk = trusted(tmp_path, PATIENT)
    (desk.work / "first.x").touch()
    with serving(steps(write("fine\n"), write("bad1\n", 2), write("good\n", 3), DONE)) as server:
        desk.use(server, lsp=scripted(tmp_path), sandbox="off")
        done = desk.run("run", "--format", "json", "work")
        offered = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    first, second, third = outputs(done.stdout, "write")
    assert second.endswith("\n1 new error:\na.x:1: bad1 is not good (scripted B1)")
    assert "error" not in first + third
    assert "lsp" in offered
    (pid,) = started(tmp_path)
    assert not lives(pid)
    shown = desk.run("lsp", "log", "mine").stdout
    assert "connected in" in shown
    (row,) = [
        row for row in json.loads(desk.run("lsp", "list", "--json").stdout) if row["name"] == "mine"
    ]
    assert (row["state"], row["files"]) == ("found", [".x"])


@pytest.mark.slow
def test_a_server_runs_in_the_sandbox(tmp_path: Path) -> None:
    desk = trusted(tmp_path, PATIENT)
    with serving(steps(write("fine\n"), write("bad1\n", 2), DONE)) as server:
        desk.use(server, lsp=scripted(tmp_path), sandbox="auto")
        done = desk.run("run", "--format", "json", "work")
    assert "a.x:1: bad1 is not good" in outputs(done.stdout, "write")[1]


@pytest.mark.slow
def test_an_error_in_a_file_that_may_not_be_read_is_told_without_its_words(tmp_path: Path) -> None:
    desk = trusted(tmp_path, PATIENT)
    (desk.work / "a.x").write_text("total\n")
    (desk.work / "key.x").write_text("call a a.total\n")
    (desk.work / "open.x").write_text("call a a.total\n")
    steps_ = steps(
        call("read", call_id="r", filePath="a.x"), write("total more\n"), write("sum\n", 2), DONE
    )
    with serving(steps_) as server:
        desk.use(
            server,
            lsp=scripted(tmp_path, "uses"),
            sandbox="off",
            permission={"read": {"key.x": "deny"}},
        )
        done = desk.run("run", "--format", "json", "work")
    told = outputs(done.stdout, "write")[1]
    assert "open.x:1: bad_total is not good" in told
    assert "key.x:1: (this file may not be read)" in told
    assert done.stdout.count("bad_total") == 2, (
        "in the text and for the screen, of the open file alone"
    )


def test_a_run_that_edits_nothing_of_the_kind_starts_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(call("write", filePath="a.txt", content="bad\n"), DONE)) as server:
        desk.use(server, lsp=scripted(tmp_path), sandbox="off")
        assert desk.run("run", "work").returncode == 0
        offered = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert "lsp" not in offered, "nothing here is of a kind that a server serves"
    assert started(tmp_path) == []


@pytest.mark.slow
def test_switched_off_nothing_starts(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "first.x").touch()
    for number, off in enumerate(
        (False, {"mine": {**scripted(tmp_path)["mine"], "disabled": True}})
    ):
        with serving(steps(write(f"bad {number}\n"), DONE)) as server:
            desk.use(server, lsp=off)
            assert desk.run("run", "work").returncode == 0
            assert "lsp" not in [
                tool["function"]["name"] for tool in server.requests[0].json["tools"]
            ]
        (desk.work / "a.x").unlink()
    assert started(tmp_path) == []


@pytest.mark.slow
def test_an_untrusted_project_starts_no_server_of_its_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "codeloop.json").write_text(json.dumps({"lsp": scripted(tmp_path)}))
    programs = desk.work / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("ty", "ruff", "basedpyright-langserver"):
        (programs / name).write_text(f"#!/bin/sh\ntouch {desk.work}/owned\n")
        (programs / name).chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    with serving(
        steps(write("bad\n"), call("write", call_id="p", filePath="a.py", content="bad\n"), DONE)
    ) as server:
        desk.use(server)
        done = desk.run("run", "--format", "json", "work", PATH=path)
    assert len(outputs(done.stdout, "write")) == 2
    assert started(tmp_path) == []
    assert not (desk.work / "owned").exists()
    assert "codeloop trust" in done.stderr
    with serving(
        steps(call("write", call_id="p", filePath="b.py", content="bad\n"), DONE)
    ) as server:
        desk.use(server)
        desk.run("run", "--trust", "work", PATH=path)
    assert (desk.work / "owned").exists(), "trusted, it is run"


@pytest.mark.slow
def test_no_server_outlives_a_program_that_is_killed(tmp_path: Path) -> None:
    desk = trusted(tmp_path)
    with serving(steps(write("fine\n"), Answer(text="slow", hang=600))) as server:
        desk.use(server, lsp=scripted(tmp_path), sandbox="off")
        process = desk.start("run", "work")
        until = time.monotonic() + 60
        while not started(tmp_path) and time.monotonic() < until:
            time.sleep(0.02)
        (pid,) = started(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        until = time.monotonic() + 60
        while lives(pid) and time.monotonic() < until:
            time.sleep(0.02)
        assert not lives(pid)


@pytest.mark.slow
def test_the_list_starts_what_it_found_and_says_why_one_can_not_be_started(tmp_path: Path) -> None:
    desk = trusted(tmp_path)
    programs = desk.work / "node_modules" / ".bin"
    programs.mkdir(parents=True)
    for name, lines in (
        ("ty", "#!/bin/sh\necho 'Error: there is no such toolchain' >&2\necho bye >&2\nexit 3\n"),
        ("pylsp", "#!/none/python3\n"),
    ):
        (programs / name).write_text(lines)
        (programs / name).chmod(0o755)
    desk.configure(lsp=scripted(tmp_path), sandbox="off")  # there, processes have other numbers
    rows = {row["name"]: row for row in json.loads(desk.run("lsp", "list", "--json").stdout)}
    assert rows["mine"]["state"] == "found"
    assert rows["ty"]["state"] == rows["pylsp"]["state"] == "can't start"
    assert rows["ty"]["how"].startswith(
        "it ended with exit code 3: Error: there is no such toolchain ("
    )
    assert len(started(tmp_path)) == 1
    assert not lives(started(tmp_path)[0])
    quick = {
        row["name"]: row["state"]
        for row in json.loads(desk.run("lsp", "list", "--json", "--no-start").stdout)
    }
    assert (quick["mine"], quick["ty"]) == ("found", "found")
    assert len(started(tmp_path)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_the_list_marks_what_runs_without_a_sandbox(tmp_path: Path, mode: str) -> None:
    desk = trusted(tmp_path)
    server = scripted(tmp_path)["mine"]
    desk.configure(sandbox=mode, lsp={"free": {**server, "sandbox": False}, "mine": server})
    shown = {line.split()[0]: line for line in desk.run("lsp", "list").stdout.splitlines()}
    assert "(without a sandbox)" in shown["free"]
    assert ("(without a sandbox)" in shown["mine"]) is (mode == "off")


@pytest.mark.slow
def test_a_project_lets_none_of_its_servers_and_formatters_out_of_the_sandbox(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    server = {**scripted(tmp_path)["mine"], "sandbox": False}
    formatter = {"command": ["true"], "extensions": [".y"], "sandbox": {"writable": ["~"]}}
    settings = {
        "lsp": {"mine": server},
        "formatter": {"own": formatter},
        "sandbox": {"variables": ["GH_TOKEN"]},
    }
    (desk.work / "codeloop.json").write_text(json.dumps(settings))
    assert desk.run("trust").returncode == 0
    done = desk.run("lsp", "list")
    assert "(without a sandbox)" not in next(
        line for line in done.stdout.splitlines() if line.startswith("mine")
    )
    warnings = desk.run("debug", "config").stderr
    for key in ("lsp.mine.sandbox", "formatter.own.sandbox", "sandbox.variables"):
        assert f"{key}: ignored, it counts in your own configuration only." in warnings


def test_trust_is_asked_for_again_when_a_servers_program_has_changed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = desk.work / "server.py"
    program.write_text("pass\n")
    own = {"mine": {"command": [sys.executable, "server.py"], "extensions": [".x"]}}
    (desk.work / "codeloop.json").write_text(
        json.dumps({"lsp": own, "formatter": {"own": {"command": ["./fmt"]}}})
    )
    (desk.work / "fmt").write_text("true\n")
    for changed in (program, desk.work / "fmt"):
        assert desk.run("trust").returncode == 0
        assert "not trusted" not in desk.run("lsp", "list", "--no-start").stderr
        changed.write_text("false\n")
        assert "codeloop trust" in desk.run("debug", "config").stderr


@pytest.mark.parametrize("arguments", [("install", "none"), ("restart", "none"), ("log", "none")])
def test_a_name_that_is_not_known_is_said(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = Desk(tmp_path).run("lsp", *arguments)
    assert done.returncode == 2
    assert "There is no language server 'none'. List them: codeloop lsp list" in done.stderr


def test_what_can_not_be_installed_from_here_says_how(tmp_path: Path) -> None:
    done = Desk(tmp_path).run("lsp", "install", "rust-analyzer")
    assert done.returncode == 2
    assert "rustup component add rust-analyzer" in done.stderr


def test_what_a_server_is_installed_with_is_named_when_it_is_missing_or_fails(
    tmp_path: Path,
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "env").symlink_to("/usr/bin/env")
    desk = Desk(tmp_path)
    done = desk.run("lsp", "install", "gopls", PATH=str(programs))
    assert "go is not on the PATH, and this server is installed with it." in done.stderr
    (programs / "go").write_text("#!/bin/sh\nexit 3\n")
    (programs / "go").chmod(0o755)
    done = desk.run("lsp", "install", "gopls", PATH=str(programs))
    assert "go failed with exit code 3" in done.stderr
