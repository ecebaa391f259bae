"""`codeloop plugin`: a package written, tested, used and removed;
one of PyPI installed from wheels of this test.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.program import Desk, bash, call, result, serving, steps
from tests.support.answers import Answer

WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
CODE = '''from codeloop.extension import tool

@tool
def weather(town: str) -> str:
    """Tell the weather of a town."""
    return f"sunny in {town}"
'''


@pytest.mark.slow
def test_a_new_package_passes_its_test_works_and_goes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (desk.work / "text.txt").write_text("to be or not to be")
    assert desk.run("plugin", "new", "my-words").returncode == 0
    pytested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "my-words"],
        cwd=desk.work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in pytested.stdout, pytested.stdout
    with serving(
        steps(call("my_words_words", path="text.txt"), bash("git add .env"), Answer(text="Done."))
    ) as server:
        desk.use(server, permission={"*": "allow"})
        before = (desk.home / "config" / "codeloop.json").read_text()
        added = desk.run("plugin", "add", "./my-words")
        assert added.returncode == 0, added.stderr
        assert desk.run("plugin", "add", f"file://{desk.work}/my%2Dwords").returncode == 0
        listed = json.loads((desk.home / "config" / "codeloop.json").read_text())["plugin"]
        assert listed == [str(desk.work.resolve() / "my-words")]
        rows = json.loads(desk.run("plugin", "list", "--json").stdout)
        ended = desk.run("run", "--format", "json", "go")
    assert {row["name"]: row["state"] for row in rows} == {
        "my-words": "ok",
        "my-words/tool/my_words_words.py": "ok",
        "my-words/plugin/my_words_guard.py": "ok",
    }
    assert result(ended)["exitCode"] == 0
    assert "6 words; the longest: not, be, or" in ended.stdout
    assert "Files with secrets are not committed here." in ended.stdout
    looked = desk.run("plugin", "debug", "my-words").stdout
    assert "hook tool.execute.before (policy)" in looked
    assert "started and loaded in" in looked
    assert desk.run("plugin", "remove", "./my-words").returncode == 0
    assert (desk.home / "config" / "codeloop.json").read_text().split() == before.split()
    assert json.loads(desk.run("plugin", "list", "--json").stdout) == []


@pytest.mark.slow
def test_a_package_of_pypi_is_installed_seen_and_locked(tmp_path: Path) -> None:
    pytest.importorskip("pip", reason="pip installs the package")
    desk = Desk(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    about = "codeloop_weather-1.0.dist-info"
    with zipfile.ZipFile(tmp_path / "codeloop_weather-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("codeloop_weather.py", CODE)
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: codeloop-weather\nVersion: 1.0\n"
        )
        wheel.writestr(f"{about}/WHEEL", WHEEL)
        wheel.writestr(
            f"{about}/entry_points.txt", "[codeloop.plugins]\nweather = codeloop_weather\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    file = desk.home / "config" / "codeloop.json"
    file.parent.mkdir(parents=True)
    file.write_text("{\n  // mine\n}\n")
    added = desk.run("plugin", "add", "pypi:codeloop-weather")
    assert added.returncode == 0, added.stderr
    assert "$ " in added.stderr
    assert "codeloop-weather 1.0" in added.stdout
    assert "// mine" in file.read_text()
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert (row["name"], row["state"], row["tools"]) == ("pypi:codeloop-weather", "ok", ["weather"])
    (module,) = (desk.home / "data" / "plugins").rglob("codeloop_weather.py")
    module.write_text(CODE + "\n")
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert row["state"] == "fails"
    assert "has changed since" in row["why"]
    assert "codeloop plugin add pypi:codeloop-weather@1.0" in row["why"]
    assert desk.run("plugin", "remove", "pypi:codeloop-weather").returncode == 0
    assert "plugin" not in file.read_text()
    assert not list((desk.home / "data" / "plugins").iterdir())


@pytest.mark.slow
def test_what_runs_without_a_sandbox_is_marked(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    file = desk.home / "config" / "tool" / "word.py"
    file.parent.mkdir(parents=True)
    file.write_text('def word() -> str:\n    """Say the word."""\n    return "WORD"\n')
    desk.configure(sandbox={"extensions": False})
    (row,) = json.loads(desk.run("plugin", "list", "--json").stdout)
    assert row["sandboxed"] is False
    assert "ok, no sandbox" in desk.run("plugin", "list").stdout


@pytest.mark.slow
def test_a_removal_that_fails_halfway_says_what_was_removed(tmp_path: Path) -> None:
    # No file larger than this many blocks can be written, as on a full disk.
    # Python would write half a module's code.
    desk = Desk(
        tmp_path, {"PYTHONDONTWRITEBYTECODE": "1"}, ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")
    )
    project_file, own_file = desk.work / "codeloop.json", desk.home / "config" / "codeloop.json"
    own_file.parent.mkdir(parents=True)
    project_file.write_text('{"plugin": ["./words"]}')
    own_file.write_text(json.dumps({"plugin": [str(desk.work / "words")]}) + " " * 10_000)
    done = desk.run("plugin", "remove", "./words")
    assert done.returncode == 1
    assert done.stdout == f"Removed from {project_file}.\n"
    assert f"{own_file} can't be written: File too large. It was not changed." in done.stderr
    assert "words" not in project_file.read_text()
    assert "words" in own_file.read_text()
