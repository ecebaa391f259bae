"""The program speaks UTF-8 in every locale."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Desk, last_work, serving, steps
from tests.support.answers import Answer, Call

NAME, CHARSET = "en_US", "ISO-8859-1"


@pytest.fixture
def locale(tmp_path: Path) -> dict[str, str]:
    """The variables of a locale of another charset, which is compiled for this test."""
    localedef, folder = shutil.which("localedef"), tmp_path / "locales"
    if localedef is None:
        pytest.skip("localedef is not installed")
    folder.mkdir()
    path = folder / f"{NAME}.{CHARSET}"
    done = subprocess.run(
        [localedef, "-i", NAME, "-f", CHARSET, path], capture_output=True, check=False
    )
    if not path.exists():
        pytest.skip(f"the locale can't be compiled: {done.stderr.decode()}")
    return {"LOCPATH": str(folder), "LC_ALL": path.name}


def run(desk: Desk, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the program whole, since its start is what reads the locale."""
    command, options = [*desk.command, *arguments], desk.options(**environment)
    return subprocess.run(
        command, **options, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


@pytest.mark.slow
def test_all_works_in_a_locale_of_another_charset(tmp_path: Path, locale: dict[str, str]) -> None:
    desk = Desk(tmp_path)
    desk.git("init", "-q")
    (desk.work / "名前.txt").write_text("値\n", encoding="utf-8")
    calls = [
        ("bash", {"command": "cat 名*; echo ü > ü.txt"}),
        ("grep", {"pattern": "値"}),
        ("glob", {"pattern": "名*"}),
    ]
    answers = [
        Answer(calls=(Call(name, json.dumps(values), f"call_{name}"),)) for name, values in calls
    ]
    with serving(steps(*answers, Answer(text="「done」"))) as server:
        desk.use(server)
        for arguments in (
            ["run", "--auto", "go"],
            ["agent", "list"],
            ["command", "list"],
            ["undo"],
            ["redo"],
        ):
            done = run(desk, *arguments, **locale)
            assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (
                done.stderr.decode()
            )
            if "go" in arguments:
                assert done.stdout.decode() == "「done」\n"
        results = [
            message["content"]
            for message in last_work(server).json["messages"]
            if message["role"] == "tool"
        ]
    # In the sandbox, bash may not find this test's locale, and says so.
    assert results.pop(0).endswith("値\n")
    assert results == ["1 match in 1 file\n名前.txt\n1: 値", "名前.txt"]
    assert (desk.work / "ü.txt").exists()


@pytest.mark.slow
def test_output_in_another_charset_has_question_marks(tmp_path: Path) -> None:
    done = run(Desk(tmp_path), "agent", "list", PYTHONIOENCODING="iso-8859-1")
    assert done.returncode == 0, done.stderr
    assert b"?" in done.stdout
