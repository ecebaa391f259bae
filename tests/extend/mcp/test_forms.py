"""The forms in which people start servers: each of them starts in its sandbox,
and what its command, variables and scripts name is there.

In `forms/rows.jsonl`, `@H` is the home and `@O` a folder elsewhere that sandboxes hide. `files`:
path -> text; `py` and `js` are servers that may import `../lib` (`lib`), a file beside them
(`beside`) or a package of `node_modules` (`dep`); `->` is a link. `act`: what the server is
asked to do; `said`: its answer.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from codeloop.schema.config import SandboxConfig
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
