"""Plugins that decide about what happens and can't be loaded: what they would have been asked about is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from codeloop.extend.host.known import KnownOffers, kept_policy
from tests.cli.program import Desk, bash, serving, steps
from tests.cli.test_extension_run import told
from tests.support.answers import Answer

GUARD = """
from codeloop.extension import hook

@hook("tool.execute.before", policy=True)
def guard(input, output):
    return output
"""
BROKEN = "def guard(:\n"
SCRIPT = steps(bash("echo hi"), Answer(text="Done."))


def result_of_call(desk: Desk, **settings: Any) -> str:
    with serving(SCRIPT) as server:
        desk.use(server, permission={"bash": "allow"}, **settings)
        done = desk.run("run", "go")
        assert done.returncode == 0, done.stderr
        (said,) = told(server)
    return said


def test_one_that_was_a_policy_and_breaks_refuses(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "plugin" / "guard.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(GUARD)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(BROKEN)
    refused = result_of_call(desk)
    assert "guard.py decides about tool.execute.before, and could not: it can't be loaded: " in refused
    assert "invalid syntax" in refused


@pytest.mark.slow
def test_a_policy_refuses_until_it_is_mended_or_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "plugin" / "guard.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(BROKEN)
    assert result_of_call(desk).startswith("hi")  # nobody knows what it would be
    guard.write_text(GUARD)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(f"import nowhere_to_be_found\n{GUARD}")
    assert "nowhere_to_be_found" in result_of_call(desk)
    guard.write_text(GUARD.replace("policy=True", "policy=False"))
    assert result_of_call(desk).startswith("hi")
    guard.write_text(BROKEN)
    assert result_of_call(desk).startswith("hi")
    guard.write_text(GUARD)
    result_of_call(desk)
    guard.unlink()
    assert result_of_call(desk).startswith("hi")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (["./guard.py", {"policy": True}], "guard.py does not exist"),
        (["pypi:codeloop-guard", {"policy": True}], "is not installed"),
        ("pypi:codeloop-guard", None),
    ],
)
def test_an_entry_that_is_marked_as_a_policy_refuses_while_it_is_not_there(
    tmp_path: Path, entry: Any, why: str | None
) -> None:
    desk = Desk(tmp_path)
    said = result_of_call(desk, plugin=[entry])
    if why is None:
        assert said.startswith("hi")
        return
    assert "decides about tool.execute.before, and could not: it can't be loaded: " in said
    assert why in said
    rows = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert [row["state"] for row in rows] == ["fails"]


@pytest.mark.slow
def test_a_mark_makes_every_hook_of_an_entry_a_policy(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    guard = desk.home / "config" / "own.py"
    guard.parent.mkdir(parents=True)
    guard.write_text(GUARD.replace("policy=True", "policy=False").replace("return output", "return 3"))
    assert result_of_call(desk, plugin=["./own.py"]).startswith("hi")
    assert "could not: it answered int" in result_of_call(desk, plugin=[["./own.py", {"policy": True}]])


@pytest.mark.slow
def test_a_package_that_is_a_policy_refuses_when_it_breaks_or_goes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    package = desk.home / "config" / "guards"
    (package / "plugin").mkdir(parents=True)
    manifest, file = package / "plugin.json", package / "plugin" / "guard.py"
    manifest.write_text('{"name": "guards", "policy": true}')
    file.write_text(BROKEN)
    plugin = ["./guards"]
    assert "invalid syntax" in result_of_call(desk, plugin=plugin)
    file.write_text(GUARD)
    assert result_of_call(desk, plugin=plugin).startswith("hi")
    manifest.write_text("{")
    assert "could not: it can't be loaded: " in result_of_call(desk, plugin=plugin)
    shutil.rmtree(package)
    assert "does not exist" in result_of_call(desk, plugin=plugin)
    assert result_of_call(desk).startswith("hi")


def test_what_was_a_policy_is_kept_by_its_path(tmp_path: Path) -> None:
    known = KnownOffers(tmp_path)
    known.keep_policy("/p/guards/plugin/a.py", ("chat.message",))
    known.keep_policy("/p/guards/plugin/b.py", ("tool.execute.before",))
    assert kept_policy(tmp_path, "/p/guards") == ("chat.message", "tool.execute.before")
    assert kept_policy(tmp_path, "/p/guard") == ()
    known.keep_policy("/p/guards/plugin/a.py", ())
    assert kept_policy(tmp_path, "/p/guards") == ("tool.execute.before",)
    (file,) = (tmp_path / "policy").iterdir()
    file.write_text("{")
    assert kept_policy(tmp_path, "/p/guards") == ()
