"""Where the output can't be written, or a standard stream is closed, a command says so in a line,
or goes on.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Desk, serving, steps
from tests.support.answers import Answer

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(
    not FULL.exists(), reason="this system has no device that is always full"
)


def run_with(desk: Desk, redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program with streams as a shell redirects them."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *desk.command, *arguments]
    return subprocess.run(command, **desk.options(), capture_output=True, text=True, check=False)


@needs_full
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["completion", "bash"],
        ["debug", "paths"],
        ["agent", "list"],
        ["models", "--all"],
    ],
)
def test_a_full_disk_is_named_once(tmp_path: Path, arguments: list[str]) -> None:
    done = run_with(Desk(tmp_path), ">/dev/full", *arguments)
    assert (done.returncode, done.stderr) == (
        1,
        "codeloop: The output can't be written (No space left on device).\n",
    )


@needs_full
@pytest.mark.slow
def test_a_session_that_could_not_be_written_is_told(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="done"))) as server:
        desk.use(server)
        done = run_with(desk, ">/dev/full", "run", "go")
        assert done.returncode == 1
        assert "Show it with: codeloop session show" in done.stderr
        shown = run_with(desk, ">/dev/full", "session", "show")
        assert (shown.returncode, shown.stderr) == (
            1,
            "codeloop: The output can't be written (No space left on device).\n",
        )


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(tmp_path: Path, redirection: str) -> None:
    desk = Desk(tmp_path)
    with serving(steps(Answer(text="done"))) as server:
        desk.use(server)
        assert run_with(desk, redirection, "run", "go").returncode == 0
    for arguments in (["doctor"], ["status"], ["stats"]):
        done = run_with(desk, redirection, *arguments)
        assert (done.returncode, done.stderr) == (0, "") or arguments == ["doctor"]
        assert "Traceback" not in done.stderr
    # Nothing that was printed has come into the database,
    # which would have had the number of stdout.
    assert "\ndone\n" in desk.run("session", "show").stdout


@pytest.mark.slow
def test_a_reader_that_has_gone_is_told_nothing(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        for arguments in (["--version"], ["--help"]):
            done = subprocess.run(
                [*Desk(tmp_path).command, *arguments],
                **Desk(tmp_path).options(),
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (1, "")
