"""Without any setting: commands run in a sandbox and ask nothing,
and where none can be had they are asked about.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Desk, bash, call, events, result, serving, steps
from tests.support import weak_machine
from tests.support.answers import Answer

DONE = Answer(text="Finished.")
WITHOUT = "No sandbox can be had on this machine"
LEAKY = "can't hide the secrets of this project"
WEAKENED = (sys.executable, weak_machine.__file__)
WITHOUT_SANDBOX = (*WEAKENED, "no-namespaces,no-landlock")
bare_machine = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux can refuse a program what sandboxes need"
)


def told(
    desk: Desk, *lines: str, arguments: Sequence[str] = (), **settings: Any
) -> tuple[int, str]:
    """Have the model run the lines; return the exit code and what the person was told."""
    with serving(
        steps(*(bash(line, f"call_{at}") for at, line in enumerate(lines)), DONE)
    ) as server:
        desk.use(server, permission={"bash": {}}, **settings)
        done = desk.run("run", "--title", "T", *arguments, "work")
    return done.returncode, done.stderr


def backend(desk: Desk) -> str:
    """Return what enforces the sandbox for this desk."""
    return json.loads(desk.run("debug", "sandbox", "--json").stdout)["backend"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    (made.work / "file").write_text("words\n")
    return made


@pytest.mark.slow
def test_commands_run_in_the_sandbox_without_a_question(desk: Desk) -> None:
    if backend(desk) in {"", "landlock"}:
        pytest.skip("no sandbox that holds can be had here")
    secret = desk.folder / ".ssh/id_ed25519"
    secret.parent.mkdir()
    secret.write_text("a key")
    script = f"echo made > made; cat {secret}; echo x > {desk.folder}/outside; echo $$"
    (desk.work / "script.sh").write_text(script)
    assert told(desk, "bash script.sh", 'for f in *; do "$f"; done', "cat /etc/hostname")[0] == 0
    assert (desk.work / "made").exists()
    assert not (desk.folder / "outside").exists()
    assert told(desk, f"echo x > {desk.folder}/outside")[0] == 5
    assert not (desk.folder / "outside").exists()


@pytest.mark.slow
@bare_machine
def test_where_no_sandbox_can_be_had_it_asks_about_what_is_not_proved_and_says_so_once(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, wrapper=WITHOUT_SANDBOX)
    (desk.work / "file").write_text("words\n")
    code, shown = told(desk, "cat file", "sort file | head -1")
    assert (code, shown.count(WITHOUT)) == (0, 1)
    code, shown = told(desk, "cat file", "touch made")
    assert (code, shown.count(WITHOUT)) == (5, 1)
    assert "Denied, because nobody can be asked: bash touch made" in shown
    assert not (desk.work / "made").exists()
    assert told(desk, "touch made", arguments=["--auto"])[0] == 0
    assert (desk.work / "made").exists()
    assert desk.run("debug", "sandbox").returncode == 1


@pytest.mark.slow
@bare_machine
def test_a_sandbox_that_is_required_or_off(tmp_path: Path) -> None:
    desk = Desk(tmp_path, wrapper=WITHOUT_SANDBOX)
    with serving(steps(bash("cat file"), DONE)) as server:
        desk.use(server, sandbox="required")
        done = desk.run("run", "--title", "T", "--format", "json", "work")
        assert result(done)["exitCode"] == 0
        (ended,) = [
            each["part"]["state"] for each in events(done.stdout) if each["type"] == "tool_use"
        ]
        assert WITHOUT in ended["error"]
        assert "The configuration requires one" in ended["error"]
    code, shown = told(desk, "touch made", sandbox="off")
    assert (code, WITHOUT in shown) == (5, False)


@pytest.mark.slow
@bare_machine
def test_a_sandbox_that_can_not_hide_the_secrets_of_a_project_does_not_count_there(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path, wrapper=(*WEAKENED, "no-namespaces"))
    if backend(desk) != "landlock":
        pytest.skip("Landlock can't be had here")
    code, shown = told(desk, f"echo x > {tmp_path}/outside")
    assert code == 5, "what is written outside is asked about there, too"
    code, shown = told(desk, "touch made")
    assert (code, LEAKY in shown, shown.count("Only Landlock")) == (0, False, 1)
    (desk.work / ".env").write_text("KEY=1\n")
    code, shown = told(desk, "ls", "touch second")
    assert (code, shown.count(LEAKY)) == (5, 1)
    assert not (desk.work / "second").exists()


@pytest.mark.slow
def test_where_the_project_holds_the_home_the_sandbox_does_not_count(tmp_path: Path) -> None:
    desk = Desk(tmp_path, environment={"HOME": str(tmp_path / "work")})
    if not backend(desk):
        pytest.skip("no sandbox can be had here")
    (desk.work / ".bashrc").write_text("kept")
    (desk.work / "sneak.py").write_text("open('.bash' + 'rc', 'a').write('evil')")
    code, shown = told(desk, "ls", "python3 sneak.py")
    assert (code, shown.count("holds your home")) == (5, 1)
    assert (desk.work / ".bashrc").read_text() == "kept"
    assert (
        desk.run("debug", "permission", "python3 x.py").stdout.count("does not count as one") == 1
    )


@pytest.mark.slow
@bare_machine
def test_files_are_changed_there_without_a_question(tmp_path: Path) -> None:
    desk = Desk(tmp_path, wrapper=WITHOUT_SANDBOX)
    with serving(steps(call("write", filePath="new.txt", content="text\n"), DONE)) as server:
        desk.use(server)
        done = desk.run("run", "--title", "T", "work")
    assert (done.returncode, done.stderr.count(WITHOUT)) == (0, 1)
    assert (desk.work / "new.txt").read_text() == "text\n"
