"""`plugin allow`, `formatter allow`, `lsp allow`: what they write, and to which file."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk

HOSTS = {"network": "hosts", "hosts": ["a.example"]}
OWN = {"writable": ["~/own"], "hosts": ["own.example"], "extensions": {"readable": ["~/own"]}}
PROJECTS = {"writable": ["~/its"], "hosts": ["its.example"], "extensions": {"writable": ["~/its"]}}


def written(desk: Desk) -> dict[str, Any]:
    return json.loads((desk.home / "config/codeloop.json").read_text())


def test_what_a_trusted_project_allows_is_not_made_the_users_own(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure(sandbox=OWN)
    server = {"type": "local", "command": ["true"], "enabled": False}
    project = {"sandbox": PROJECTS, "mcp": {"s": server}}
    (desk.work / "codeloop.json").write_text(json.dumps(project))
    assert desk.run("trust").returncode == 0
    for arguments in (
        ("plugin", "allow", "--project", "--write", "~/new", "--host", "new.example"),
        ("plugin", "allow", "--read", "~/new"),
        ("mcp", "allow", "s", "--host", "more.example"),
    ):
        done = desk.run(*arguments)
        assert done.returncode == 0, done.stderr
    assert written(desk)["sandbox"] == {
        "writable": ["~/own", "~/new"],
        "hosts": ["own.example", "new.example", "more.example"],
        "extensions": {"readable": ["~/own", "~/new"]},
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, HOSTS),
        (True, HOSTS),
        ({"readable": ["~/x"]}, {"readable": ["~/x"], **HOSTS}),
        ({"network": "off"}, HOSTS),
        ({"hosts": ["b.example"]}, {"network": "hosts", "hosts": ["b.example", "a.example"]}),
        ({"network": "on"}, {"network": "on"}),
        (False, False),
    ],
)
def test_a_host_is_written_for_programs_that_have_no_network(
    before: Any, after: Any, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    entry = {} if before is None else {"sandbox": before}
    desk.configure(formatter={"ruff": entry}, lsp={"pyright": entry})
    for section, name in (("formatter", "ruff"), ("lsp", "pyright")):
        done = desk.run(section, "allow", name, "--host", "a.example")
        assert done.returncode == 0, done.stderr
        assert ("allowed already" in done.stdout) is (before == after)
        assert written(desk)[section][name]["sandbox"] == after


@pytest.mark.parametrize(
    ("section", "name", "known"), [("formatter", "rufff", "ruff"), ("lsp", "pyrigth", "pyright")]
)
def test_an_unknown_program_is_refused(section: str, name: str, known: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure()
    before = written(desk)
    refused = desk.run(section, "allow", name, "--read", "~/x")
    assert refused.returncode == 2
    assert f"Did you mean `{known}`?" in refused.stderr
    assert written(desk) == before


def test_a_host_does_not_move_extensions_into_another_sandbox(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.configure()
    before = written(desk)
    done = desk.run("plugin", "allow", "--host", "a.example")
    assert "allowed already" in done.stdout, done.stderr
    assert written(desk) == before
    desk.configure(sandbox={"extensions": True})
    before = written(desk)
    refused = desk.run("plugin", "allow", "--read", "~/x")
    assert refused.returncode == 2
    assert "codeloop plugin allow --project" in refused.stderr
    assert written(desk) == before
