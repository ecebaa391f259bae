"""A session as people have them every day: the real program in the profile auto,
where nobody answers a question.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.program import Desk, call, events, result, serving, steps
from tests.support.answers import Answer
from tests.support.sandbox_support import find_sandbox

OWN = ("PIP_", "UV_", "NPM_", "npm_", "GO", "CARGO", "RUSTUP", "SSL_")
"""What people set for their package managers."""
BLOCKED = "blocked: "


class Line(NamedTuple):
    """One call of bash: its line and further parameters."""

    text: str
    more: dict[str, Any] = {}


class Ran(NamedTuple):
    """How a line ended, as the model was told. `code`: None for what runs in the background."""

    line: str
    code: int | None
    told: str


def desk_of(folder: Path, **environment: str) -> Desk:
    """Return a desk with a repository and somebody's global git identity.
    Skips without a sandbox of namespaces.
    """
    if find_sandbox() != "namespaces":
        pytest.skip(
            "everyday work without questions needs a sandbox of namespaces, which can't be had here"
        )
    own = {name: value for name, value in os.environ.items() if name.startswith(OWN)}
    if (toolchains := Path.home() / ".rustup").is_dir():
        own.setdefault("RUSTUP_HOME", str(toolchains))
    desk = Desk(folder, environment={**own, **environment})
    (folder / ".gitconfig").write_text("[user]\n\tname = A. Person\n\temail = person@example.com\n")
    desk.git("init", "-q")
    return desk


def worked(desk: Desk, *lines: Line | str, seconds: int = 400, **settings: Any) -> list[Ran]:
    """Have the model run the lines. Nothing of it may be asked about,
    and the turn must end well.
    """
    calls = [each if isinstance(each, Line) else Line(each) for each in lines]
    answers = [
        call(
            "bash",
            call_id=f"call_{at}",
            command=text,
            description="Works",
            timeout=seconds * 1000,
            **more,
        )
        for at, (text, more) in enumerate(calls)
    ]
    with serving(steps(*answers, Answer(text="All is done."))) as server:
        desk.use(server, **settings)
        done = desk.run("run", "--title", "T", "--format", "json", "work")
    assert (done.returncode, result(done)["denied"]) == (0, []), done.stdout + done.stderr
    ran = [
        _ran(event["part"]["state"]) for event in events(done.stdout) if event["type"] == "tool_use"
    ]
    assert len(ran) == len(calls)
    return ran


def all_well(ran: Sequence[Ran]) -> None:
    """Check that every line ended well and the sandbox was in nobody's way."""
    for each in ran:
        assert each.code in {0, None}, f"$ {each.line}\n{each.told}"
        assert BLOCKED not in each.told, f"$ {each.line}\n{each.told}"


def _ran(state: dict[str, Any]) -> Ran:
    return Ran(state["input"]["command"], state["metadata"].get("exit"), state["output"])


def reached(*command: str) -> None:
    """Skip when a package manager can't reach its registry, without a sandbox too."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{command[0]} can't be asked: {error}")
    if done.returncode:
        pytest.skip(f"the registry of {command[0]} can't be reached: {done.stderr.strip()[-200:]}")
