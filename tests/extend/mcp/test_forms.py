"""The forms in which people start servers: each of them starts in its sandbox,
and what its command, variables and scripts name is there.

In `forms/rows.jsonl`, `@H` is the home and `@O` a folder elsewhere that sandboxes hide. `files`:
path -> text; `py` and `js` are servers that may import `../lib` (`lib`), a file beside them
(`beside`) or a package of `node_modules` (`dep`); `->` is a link. `act`: what the server is
asked to do; `said`: its answer.
"""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.world import world
from tests.support.sandbox_support import has_sandbox

FOLDER = Path(__file__).with_name("forms")
IMPORTS = {
    "py": "",
    "py lib": "sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'lib'))\nimport m",
    "py beside": "import beside",
    "js": "",
    "js dep": 'import "dep";',
}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]


class Form(NamedTuple):
    """One row."""

    name: str
    files: dict[str, str]
    entry: dict[str, Any]
    said: str
    act: dict[str, str] = {}


ROWS = [Form(**json.loads(line)) for line in (FOLDER / "rows.jsonl").read_text().splitlines()]


def write_file(path: Path, text: str) -> None:
    """Make one file of a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if text.startswith("->"):
        path.symlink_to(text.removeprefix("->"))
        return
    interpreter, _, kind = text.removeprefix("#!").rpartition("\n")
    if text == "#!py":
        interpreter, kind = "/usr/bin/env python3", "py"
    if kind in IMPORTS:
        # A server that is run by itself has the line that names its interpreter.
        first = f"#!{interpreter or '/usr/bin/env node'}\n" if kind[0] == "j" or interpreter else ""
        source = (FOLDER / f"tiny.{'mjs' if kind[0] == 'j' else 'py'}").read_text()
        text = first + source.replace("# import", IMPORTS[kind]).replace("// import", IMPORTS[kind])
    path.write_text(text)
    path.chmod(0o755 if text.startswith("#!") else 0o644)


@pytest.mark.parametrize("form", ROWS, ids=lambda form: form.name)
async def test_a_server_starts_and_reads_what_is_named(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if form.name.startswith("node") and shutil.which("node") is None:
        pytest.skip("there is no node here")
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    text = msgspec.json.encode([form.files, form.entry, form.act]).decode()
    text = text.replace("@H", str(home)).replace("@O", str(elsewhere))
    files, entry, act = json.loads(text)
    for path, content in files.items():
        write_file(Path(path), content)
    async with world(home, {"p": entry}, sandbox=SandboxConfig()) as it:
        assert (await it.call("act", **act)).output == form.said


def tiny(path: Path) -> list[str]:
    """Return the command of a tiny server at a path."""
    write_file(path, "py")
    return ["python3", str(path)]


@pytest.mark.parametrize("name", ["d/new.json", "d/there.json", "d/x.db", "out", "deep/er/log.txt"])
async def test_a_place_that_may_be_written_is_really_written(name: str, tmp_path: Path) -> None:
    command = tiny(tmp_path / "c" / "s.py")
    beside = tmp_path / "d" / "beside.json"
    for path in (beside, tmp_path / "d" / "there.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("before")
    place = tmp_path / name
    entry = {"type": "local", "command": command, "sandbox": {"writable": [str(place)]}}
    file = place if place.suffix else place / "a.txt"
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        if not place.exists():
            # What is not there is not read as empty.
            with pytest.raises(ToolFailure, match="No such file"):
                await it.call("act", read=str(file))
        for suffix in ("", "-journal"):
            await it.call("act", write=f"{file}{suffix}", text="mine")
            assert Path(f"{file}{suffix}").read_text() == "mine"
        # Refused, or written to the server's private home alone.
        with suppress(ToolFailure):
            await it.call("act", write=str(beside))
    assert beside.read_text() == "before"


async def test_a_file_that_is_no_longer_named_is_not_read_as_empty(tmp_path: Path) -> None:
    command, file = tiny(tmp_path / "c" / "s.py"), tmp_path / "d" / "mem.json"
    file.parent.mkdir()
    file.write_text('{"a": 1}')
    named = {"type": "local", "command": command, "environment": {"FILE": str(file)}}
    async with world(tmp_path, {"p": named}, sandbox=SandboxConfig()) as it:
        assert (await it.call("act", read=str(file))).output == '{"a": 1}'
    entry = {"type": "local", "command": command}
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        with pytest.raises(ToolFailure, match="No such file"):
            await it.call("act", read=str(file))


async def test_folders_of_keys_stay_hidden_whatever_is_named(tmp_path: Path) -> None:
    for name in (".ssh/id_rsa", ".aws/credentials", "work/plain"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("KEY")
    command = [*tiny(tmp_path / "c" / "s.py"), str(tmp_path), "~/.ssh", str(tmp_path / "home")]
    entry = {"type": "local", "command": command}
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data" / "auth.json").write_text("KEY")
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        for name in (".ssh/id_rsa", ".aws/credentials", "home/data/auth.json"):
            with pytest.raises(ToolFailure):
                await it.call("act", read=str(tmp_path / name))
