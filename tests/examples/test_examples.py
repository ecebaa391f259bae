"""Each program of `examples/` runs, in a project of its own,
with a script in place of a paid model.
"""

import asyncio
import importlib.util
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import codeloop
from codeloop.model.testing.script import ScriptedAnswer, ScriptedCall
from tests.support.scripted_project import make_answer, make_call, make_startup

EXAMPLES = Path(__file__).parents[2] / "examples"
Scripted = Callable[..., Path]


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def says(text: str) -> ScriptedAnswer:
    return ScriptedAnswer(text=text, deltas=3)


def gives(**fields: Any) -> ScriptedAnswer:
    return make_answer(make_call("StructuredOutput", **fields))


def runs(command: str) -> ScriptedAnswer:
    return make_answer(make_call("bash", command=command, description="run it"))


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Make folders whose model says what is given;
    `codeloop.open` opens them in a home of the test.
    """
    real = codeloop.open

    def open_scripted(directory: Any = ".", **options: Any) -> Any:
        folder = Path(directory).absolute()
        start = make_startup(tmp_path / "home", folder)
        script = tmp_path / f"{folder.name}.jsonl"
        replay = options.pop("replay", script)
        return real(
            folder, replay=replay, environment=start.environment, settings=start.settings, **options
        )

    monkeypatch.setattr(codeloop, "open", open_scripted)

    def project(*answers: ScriptedAnswer, name: str = "work") -> Path:
        (tmp_path / name).mkdir()
        lines = b"".join(msgspec.json.encode(answer) + b"\n" for answer in answers)
        (tmp_path / f"{name}.jsonl").write_bytes(lines)
        return tmp_path / name

    return project


def test_every_program_is_run_here() -> None:
    tested = {name.removeprefix("test_the_") for name in globals() if name.startswith("test_the_")}
    assert {path.stem for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}} == tested
    assert len(tested) == 11


@pytest.mark.slow
async def test_the_code_reviewer(scripted: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    remark = {"file": "calc.py", "line": 2, "severity": "blocker", "text": "It subtracts."}
    work = scripted(gives(summary="One blocker.", remarks=[remark]))
    assert await example("code_reviewer").main(str(work)) == 1
    assert capsys.readouterr().out == "One blocker.\ncalc.py:2: blocker: It subtracts.\n"


async def test_the_changelog_writer(scripted: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    content = "## Unreleased\n- Faster.\n"
    work = scripted(
        make_answer(make_call("commits")),
        make_answer(make_call("write", filePath="CHANGELOG.md", content=content)),
        says("Added one line."),
    )
    git = partial(subprocess.run, cwd=work, check=True)
    identity = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost"]
    git(["git", "init", "-q"])
    for title in ("Start", "Make it faster"):
        git([*identity, "commit", "-q", "--allow-empty", "-m", title])
    git(["git", "tag", "v1", "HEAD~1"])
    await example("changelog_writer").main("v1", str(work))
    assert (work / "CHANGELOG.md").read_text() == content
    assert capsys.readouterr().out == f"Added one line.\nchanged: {work / 'CHANGELOG.md'}\n"


@pytest.mark.slow
async def test_the_test_fixer(scripted: Scripted) -> None:
    fixed = scripted(
        make_answer(make_call("write", filePath="calc.py", content="x\n")),
        says("A sign was wrong."),
        name="fixed",
    )
    failed = scripted(name="failed")
    endless = scripted(*[runs(f"echo {number}") for number in range(50)], name="endless")
    ends = await example("test_fixer").main(str(fixed), str(failed), str(endless))
    assert ends[str(fixed)] == "A sign was wrong. (1 files, $0.00)"
    assert ends[str(failed)].startswith("failed: ")
    assert ends[str(endless)].startswith("not done: ")


async def test_the_chat_bot(scripted: Scripted) -> None:
    module = example("chat_bot")
    said: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    class Recorded:
        async def say(self, thread: str, text: str) -> None:
            said.put_nowait((thread, text))

    work = scripted(runs("make deploy"), says("I may not."), says("Hello."))
    async with codeloop.open(work, permission={"bash": "ask"}) as project:
        bot = module.Bot(project, Recorded())
        bot.heard("one", "deploy it")
        thread, question = await asyncio.wait_for(said.get(), 60)
        assert (thread, question) == ("one", "May I? bash: make deploy (yes/no)")
        bot.heard("one", "no")
        assert await asyncio.wait_for(said.get(), 60) == ("one", "I may not.")
        bot.heard("two", "hello")
        assert await asyncio.wait_for(said.get(), 60) == ("two", "Hello.")
        await bot.close()
        assert len(await project.sessions()) == 2


@pytest.mark.slow
async def test_the_extraction(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    invoice = {
        "number": "7",
        "issued": "2026-03-01",
        "seller": "A",
        "items": [{"what": "tea", "amount": 2.5}],
    }
    work = scripted(gives(**invoice), says("nothing to see"), *[says("nothing")] * 9)
    monkeypatch.chdir(work)
    for name in ("a.txt", "b.txt"):
        (work / name).write_text("an invoice\n")
    found = await example("extraction").main("a.txt", "b.txt")
    assert [(each.number, each.issued, each.total) for each in found] == [
        ("7", date(2026, 3, 1), 2.5)
    ]


async def test_the_permission_policy(scripted: Scripted) -> None:
    work = scripted(
        runs("git status"),
        runs("curl example.com"),
        make_answer(make_call("write", filePath="src/a.py", content="a\n")),
        says("Ok."),
    )
    assert await example("permission_policy").main("go", str(work)) == "Ok."
    log = (work / "policy.log").read_text().splitlines()
    assert [line.partition(":")[0] for line in log] == ["Allow bash", "Deny bash", "Allow edit"]
    assert (work / "src/a.py").exists()


@pytest.mark.slow
async def test_the_supervisor(scripted: Scripted) -> None:
    work = scripted(says("One."), says("Two."), says("Three."), gives(steps=["build it"], risks=[]))
    plan = await example("supervisor").main("add a flag", str(work))
    assert plan.steps == ["build it"]


def test_the_replay_in_tests(scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    example("replay_in_tests").test_the_greeting_is_written(tmp_path / "empty")
    assert "Ada" in (tmp_path / "empty" / "greeting.txt").read_text()


async def test_the_progress_bar(scripted: Scripted) -> None:
    work = scripted(runs("echo hi"), says("Done."))
    drawn = io.StringIO()
    assert await example("progress_bar").main("go", str(work), stream=drawn) == "Done."
    assert "] step 0, $0.000 bash" in drawn.getvalue()
    assert drawn.getvalue().splitlines()[-1].split("\r")[-1].startswith("\x1b[K[#")


@pytest.mark.slow
async def test_the_notebook(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run the cells one after the other, as a kernel does: in one namespace,
    within a running loop.
    """
    work = scripted(
        says("It adds."),
        make_answer(ScriptedCall("StructuredOutput", {"a.py": 3, "b.py": 30})),
        says("b.py"),
    )
    monkeypatch.chdir(work)
    monkeypatch.setattr("codeloop.sync.open_directory", codeloop.open)
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["answer"].text == "It adds."
    assert names["sizes"] == {"a.py": 3, "b.py": 30}
    assert capsys.readouterr().out == "b.py"


@pytest.mark.slow
def test_the_same_change(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "same_change.py"), "5"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CODELOOP_HOME": str(tmp_path / "home"),
    }
    for done in (5, 0):
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("done  service-") == done
        assert "5 of 5 repositories have the change on a branch" in ran.stdout
    page = (tmp_path / "same-change" / "results.html").read_text()
    assert page.count("branch codeloop/same-change-") == 5
    assert page.count("datetime.timezone.utc") == 5
