"""Formatters that misbehave: whatever they do, the file holds the edit or its formatted text."""

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeloop.schema.config import FormatterConfig
from codeloop.workspace.files.safe_open import read_file
from codeloop.workspace.format.formatters import FormattedFile, Formatters
from codeloop.workspace.format.run_formatters import format_files
from codeloop.workspace.workspace import Workspace
from tests.cli.program import lives

EDIT = "the edit of the model\n" * 40
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    for name in ("work", "bin", "scratch"):
        (tmp_path / name).mkdir()
    made = Workspace(
        tmp_path / "work",
        tmp_path / "work",
        tmp_path / "scratch",
        {"PATH": f"{tmp_path}/bin:{SYSTEM}"},
    )
    yield made
    await made.shells.close()


async def formatted(
    workspace: Workspace, script: str, *, in_place: bool, seconds: float = 60
) -> FormattedFile:
    """Format a file by a shell script: it changes `$1`,
    or it stands for `gofmt` and has the text on its stdin.
    """
    real = workspace.root / "a.go"
    real.write_text(EDIT)
    program = workspace.root.parent / "bin" / "gofmt"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    (workspace.root / "go.mod").touch()
    own = {"gofmt": FormatterConfig(command=["gofmt", "$FILE"] if in_place else None)}
    found = Formatters(workspace, own).find_formatters(real)
    (done,) = (await format_files(workspace, {real: found}, seconds)).values()
    return done


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo half > $1; echo 'line 3: no' >&2; exit 3", "gofmt failed: line 3: no"),
        ("echo half > $1; kill -9 $$", "gofmt failed: exit code -9"),
        ("printf '\\0\\1\\2' > $1", "gofmt returned something that is not text"),
        (": > $1", "gofmt returned nothing"),
        ("echo 'usage: gofmt' > $1", "gofmt returned another text"),
        ("rm $1", "gofmt took the file away"),
        ("rm $1; mkdir $1; echo x > $1/x", "gofmt took the file away"),
        ("rm $1; ln -s /etc/passwd $1", "gofmt took the file away"),
        ("rm $1; mkfifo $1", "gofmt took the file away"),
    ],
)
async def test_an_edit_survives_what_changes_it_in_place(
    workspace: Workspace, script: str, said: str
) -> None:
    done = await formatted(workspace, script, in_place=True)
    assert (done.changed_by, done.problems) == ((), (said,))
    assert read_file(workspace.root / "a.go").data == EDIT.encode()
    assert done.file.data == EDIT.encode()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("cat; echo 'line 3: no' >&2; exit 2", "gofmt failed: line 3: no"),
        ("printf '\\0\\1\\2'", "gofmt returned something that is not text"),
        ("exit 0", "gofmt returned nothing"),
        ("echo 'usage: gofmt'", "gofmt returned another text"),
        ("sed s/m/\\\\xe9/", "gofmt returned another text"),
        ("tr a-z A-Z; echo theirs > a.go", "gofmt came too late: the file was changed meanwhile"),
    ],
)
async def test_an_edit_survives_what_a_filter_returns(
    workspace: Workspace, script: str, said: str
) -> None:
    done = await formatted(workspace, script, in_place=False)
    assert (done.changed_by, done.problems) == ((), (said,))
    assert read_file(workspace.root / "a.go").data == (
        b"theirs\n" if "theirs" in script else EDIT.encode()
    )
    assert done.file.data == EDIT.encode(), "what somebody else wrote does not count as read"


@pytest.mark.parametrize("in_place", [True, False])
async def test_what_hangs_is_ended_with_all_that_it_started(
    workspace: Workspace, in_place: bool
) -> None:
    script = "sleep 300 & echo $! > pid; echo half > a.go.half; wait" + (
        "; echo half > $1" if in_place else ""
    )
    seconds, begun = 0.6, workspace.root / "pid"
    while True:
        done = await formatted(
            workspace,
            f"{'echo half > $1; ' if in_place else ''}{script}",
            in_place=in_place,
            seconds=seconds,
        )
        if (begun.exists() and begun.read_text()) or seconds > 30:
            break
        seconds *= 2  # the machine was too busy for it to begin
    assert done.problems == ("gofmt took too long and was ended",)
    assert (workspace.root / "a.go").read_text() == EDIT
    pid = int(begun.read_text())
    assert not lives(pid)


async def test_a_cancelled_call_leaves_the_edit(workspace: Workspace) -> None:
    work = asyncio.create_task(
        formatted(workspace, "echo half > $1; echo > began; sleep 300", in_place=True)
    )
    while not (workspace.root / "began").exists():
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert (workspace.root / "a.go").read_text() == EDIT


async def test_a_formatter_changes_bytes_and_nothing_else_of_a_file(workspace: Workspace) -> None:
    script = "tr a-z A-Z < $1 > t; chmod 777 t; mv t $1"
    done = await formatted(workspace, script, in_place=True)
    assert (done.changed_by, done.problems) == (("gofmt",), ())
    status = (workspace.root / "a.go").stat()
    assert stat.S_IMODE(status.st_mode) == done.file.mode != 0o777
    assert read_file(workspace.root / "a.go").stamp.matches(done.file.stamp)
    assert (workspace.root / "a.go").read_text() == EDIT.upper()


async def test_one_that_changes_other_files_too_has_formatted_its_own(workspace: Workspace) -> None:
    (workspace.root / "b.go").write_text("other\n")
    done = await formatted(workspace, "echo broken > b.go; tr a-z A-Z", in_place=False)
    assert done.changed_by == ("gofmt",)
    assert (workspace.root / "a.go").read_text() == EDIT.upper()
