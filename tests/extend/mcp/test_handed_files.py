"""What a server writes where only it can look is read by everybody, at the path that is said."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.permission import Action
from tests.extend.mcp.test_forms import tiny
from tests.extend.mcp.world import World, world
from tests.support.sandbox_support import has_sandbox

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here"),
]


def read_saved(it: World, name: str) -> str:
    return (it.ctx.workspace.scratch / name).read_text()


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/tmp/.shots/page-2026-11-29T10.yml", "[Snapshot]({})"),
        ("/tmp/repo/outputs/12-ab/repo.xml", "You can read the file directly using path: {}."),
        ("/tmp/export.csv", '{{"path": "{}", "rows": 3}}'),
        ("/tmp/a b/report.xlsx", "Saved as '{}'"),
        ("/tmp/x.pdf", "file://{}"),
        ("~/charts/x.svg", "chart: {}"),
        ("out.md", "written to {}"),
        ("out/notes.md", "see `{}`"),
    ],
)
async def test_a_file_that_a_server_hands_over_is_read(
    file: str, said: str, tmp_path: Path
) -> None:
    entry = {"type": "local", "command": tiny(tmp_path / "c" / "s.py")}
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        path = file.replace("~", str(tmp_path))
        result = await it.call("act", write=path, text="handed over", say=said.format(path))
        name = re.findall(r"tool_[0-9a-f]{8}\.\w+", result.output)[0]
        rest = said.replace("file://", "").replace("{{", "{").replace("}}", "}")
        assert result.output == rest.replace("{}", name)
        assert Path(name).suffix == Path(file).suffix
        assert read_saved(it, name) == "handed over"


async def test_a_link_leads_to_no_file_that_the_server_may_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("KEY")
    entry = {"type": "local", "command": tiny(tmp_path / "c" / "s.py")}
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        for link in ("/tmp/x.txt", "/tmp/folder"):
            target = secret if link.endswith("txt") else secret.parent
            said = link if link.endswith("txt") else f"{link}/secret.txt"
            result = await it.call("act", link=link, to=str(target), say=said)
            assert result.output == said
    assert not list((tmp_path / "scratch").glob("tool_*"))


async def test_a_path_of_the_project_stays_as_it_is(tmp_path: Path) -> None:
    command = [*tiny(tmp_path / "c" / "s.py"), str(tmp_path / "d")]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.txt").write_text("data")
    async with world(
        tmp_path, {"p": {"type": "local", "command": command}}, sandbox=SandboxConfig()
    ) as it:
        said = f"{tmp_path}/d/x.txt and https://x.example/a.html and 3.5"
        assert (await it.call("act", say=said)).output == said


class Rules:
    """Rules that deny reading one file of the project."""

    def list_denials(self, permission: str, /) -> tuple[str, ...]:
        return ("private.txt",) if permission == "read" else ()

    def judge(self, permission: str, patterns: Sequence[str], /) -> dict[str, Action]:
        return {each: "deny" for each in patterns if each in self.list_denials(permission)}


async def test_a_file_is_handed_over_where_rules_deny_a_path(tmp_path: Path) -> None:
    entry = {"type": "local", "command": tiny(tmp_path / "c" / "s.py")}
    async with world(tmp_path, {"p": entry}, sandbox=SandboxConfig()) as it:
        it.ctx.workspace.rules = Rules()
        (it.ctx.workspace.root / "private.txt").write_text("own")
        result = await it.call("act", write="/tmp/x.txt", text="handed over", say="/tmp/x.txt")
        assert read_saved(it, result.output) == "handed over"
