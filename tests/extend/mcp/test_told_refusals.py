"""What a server's sandbox refuses is told with the command that allows it, however the server
tells of it: without the path, inside JSON, by a temporary file, or as a success.
"""

from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.tool.tool import ToolFailure
from tests.extend.mcp.test_forms import tiny
from tests.extend.mcp.world import world
from tests.support.sandbox_support import has_sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]
SILENT = "Could not read the resource: No such file or directory."
JSON = '{"error": "Cannot open \\"@/hidden/x.db\\": No such file or directory",\\n "type": "IO"}'


async def ask(tmp_path: Path, entry: dict[str, Any], **given: str) -> str:
    """Return what the model reads of a call."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "a.md").write_text("text")
    server = {"type": "local", "command": tiny(tmp_path / "c" / "s.py"), **entry}
    texts = {name: text.replace("@", str(tmp_path)) for name, text in given.items()}
    async with world(tmp_path, {"p": server}, sandbox=SandboxConfig()) as it:
        try:
            return (await it.call("act", **texts)).output
        except ToolFailure as error:
            return str(error)


@pytest.mark.parametrize(
    ("given", "option"),
    [
        # The path is in the call alone, as it is or in an address.
        ({"read": "@/hidden/a.md", "fails": SILENT}, "--read ~/hidden/a.md"),
        ({"read": "/no/x", "uri": "file://@/hidden/a.md", "fails": SILENT}, "--read ~/hidden/a.md"),
        ({"read": "@/hidden/x.db", "fails": JSON}, "--write ~/hidden/x.db"),
        ({"say": "File not found: ~/hidden/a.md"}, "--read ~/hidden/a.md"),
        # An error of the protocol.
        ({"read": "@/hidden/a.md", "rpc": "yes"}, "--read ~/hidden/a.md"),
        # Nothing failed, but only the server sees the file.
        ({"write": "@/hidden/new.docx", "say": "Saved."}, "--write ~/hidden/new.docx"),
    ],
)
async def test_a_refusal_is_told_with_what_to_type(
    given: dict[str, str], option: str, tmp_path: Path
) -> None:
    said = await ask(tmp_path, {}, **given)
    assert f"To allow it: codeloop mcp allow p {option}" in said
    assert said.endswith(option)


@pytest.mark.parametrize("name", ["m.json", "data/"])
async def test_what_is_written_at_a_named_place_and_lost_is_told(name: str, tmp_path: Path) -> None:
    place = tmp_path / "hidden" / name
    file = place if place.suffix else place / "a.txt"
    entry = {"environment": {"PLACE": str(place)}}
    said = await ask(tmp_path, entry, write=str(file), say="Saved.")
    assert said.endswith(f"--write ~/hidden/{name.rstrip('/')}")
    assert not place.exists()


async def test_a_folder_that_was_named_is_allowed_whole(tmp_path: Path) -> None:
    entry = {"environment": {"PLACE": str(tmp_path / "hidden")}}
    said = await ask(tmp_path, entry, write="@/hidden/b/c.txt")
    assert said.endswith("--write ~/hidden")


@pytest.mark.parametrize("name", ["m.json.80f54636228021b9.tmp", ".m.json.tmp", "m.json-x"])
async def test_a_temporary_file_stands_for_the_one_that_it_becomes(
    name: str, tmp_path: Path
) -> None:
    entry = {"environment": {"FILE": str(tmp_path / "hidden" / "m.json")}}
    fails = f"ENOENT: no such file or directory, open '@/hidden/{name}'"
    said = await ask(tmp_path, entry, read="/no/x", fails=fails)
    assert said.endswith("--write ~/hidden/m.json")


@pytest.mark.parametrize(
    "given",
    [
        {"say": "There is nothing about @/hidden/a.md."},
        {"read": "@/shown/none.md", "fails": SILENT},
        {"write": "/tmp/x.png", "say": "Saved."},
    ],
)
async def test_what_no_sandbox_refused_is_not_told(given: dict[str, str], tmp_path: Path) -> None:
    assert "Its sandbox" not in await ask(tmp_path, {}, **given)
