"""The read tool on real files of every kind."""

import base64
import os
import resource
import struct
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codeloop.permission.gate import Denied
from codeloop.schema.bounds.outlines import OUTLINE_BYTES, OUTLINE_FILES
from codeloop.schema.limits import READ_IMAGE
from codeloop.schema.permission import PermissionRule
from codeloop.tool.builtin.files.read import ReadParams, read
from codeloop.tool.tool import ToolFailure, ToolResult
from tests.tool.context import TestContext, make_context
from tests.workspace.files.test_image import encoded, noise


async def run(
    ctx: TestContext, path: str | Path = "f", offset: int | None = None, limit: int | None = None
) -> ToolResult:
    return await read.run(ReadParams(str(path), offset, limit), ctx)


def make(tmp_path: Path, data: bytes, name: str = "f") -> TestContext:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / name).write_bytes(data)
    return ctx


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    rows = zlib.compress(b"".join(b"\0" + bytes(3 * width) for _ in range(min(height, 4))))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


async def test_the_output_and_metadata_are_as_on_the_wire(tmp_path: Path) -> None:
    ctx = make(tmp_path, b"def add(a, b):\n    return a - b\n", "calc.py")
    path = str(ctx.workspace.root / "calc.py")
    result = await run(ctx, "calc.py")
    assert result.title == "calc.py"
    assert result.output == "1: def add(a, b):\n2:     return a - b"
    text = "def add(a, b):\n    return a - b"
    shown = {
        "type": "file",
        "path": path,
        "text": text,
        "lineStart": 1,
        "lineEnd": 2,
        "totalLines": 2,
        "truncated": False,
    }
    assert result.metadata == {"preview": text, "truncated": False, "loaded": [], "display": shown}
    (need,) = ctx.asked
    assert (need.permission, need.patterns, need.always, need.metadata) == (
        "read",
        ("calc.py",),
        ("*",),
        {},
    )


async def test_offset_and_limit_choose_lines_and_the_last_line_says_of_how_many(
    tmp_path: Path,
) -> None:
    ctx = make(tmp_path, "".join(f"line {n}\n" for n in range(1, 101)).encode())
    result = await run(ctx, offset=10, limit=3)
    assert result.output == "10: line 10\n11: line 11\n12: line 12\n\n(lines 10-12 of 100)"
    assert result.metadata["truncated"] is True
    assert (await run(ctx, offset=1, limit=2)).output.endswith("2: line 2\n\n(lines 1-2 of 100)")
    assert (await run(ctx, limit=3)).output.endswith("(lines 1-3 of 100; offset=4 goes on)"), (
        "a start may go on"
    )
    assert (
        await run(ctx, offset=99, limit=3)
    ).output == "99: line 99\n100: line 100\n\n(lines 99-100 of 100)"


async def test_two_thousand_lines_are_the_default(tmp_path: Path) -> None:
    result = await run(make(tmp_path, b"x\n" * 2001))
    assert result.output.endswith("2000: x\n\n(lines 1-2000 of 2001; offset=2001 goes on)")


async def test_fifty_kilobytes_are_the_most(tmp_path: Path) -> None:
    ctx = make(tmp_path, (b"x" * 999 + b"\n") * 100)
    result = await run(ctx)
    assert result.output.endswith("(lines 1-51 of 100; cut at 50 KB; offset=52 goes on)")
    asked = await run(ctx, offset=2, limit=90)
    assert asked.output.endswith("cut at 50 KB; offset=53 goes on)"), "not all that was asked for"
    assert len(result.output) < 53_000


async def test_long_lines_are_cut_and_marked(tmp_path: Path) -> None:
    result = await run(make(tmp_path, b"x" * 2001 + b"\nshort\n" + b"y" * 2000))
    assert (
        result.output
        == "1: " + "x" * 2000 + "... (line cut after 2000 characters)\n2: short\n3: " + "y" * 2000
    )


@pytest.mark.parametrize(
    ("data", "lines"), [(b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"a\r\nb\r\n", 2), (b"\n", 1)]
)
async def test_lines_are_counted_as_people_do(tmp_path: Path, data: bytes, lines: int) -> None:
    result = await run(make(tmp_path, data))
    assert len(result.output.split("\n")) == result.metadata["display"]["totalLines"] == lines
    assert "\r" not in result.output


async def test_empty_files_say_so(tmp_path: Path) -> None:
    assert "(The file is empty)" in (await run(make(tmp_path, b""))).output


async def test_an_offset_beyond_the_end_names_the_count(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="has 2 lines; offset 9"):
        await run(make(tmp_path, b"a\nb\n"), offset=9)


@pytest.mark.parametrize(
    "data",
    [
        "grüße\n".encode(),
        b"\xef\xbb\xbf" + "grüße\n".encode(),
        b"\xff\xfe" + "grüße\r\n".encode("utf-16-le"),
        "grüße, où déjà\n".encode("latin-1"),
    ],
)
async def test_every_encoding_is_shown_as_text(tmp_path: Path, data: bytes) -> None:
    assert (await run(make(tmp_path, data))).output.startswith("1: grüße")


async def test_a_character_over_the_edge_of_a_chunk_stays_whole(tmp_path: Path) -> None:
    data = b"\xff\xfe" + ("grüße 😀\n" * 40_000).encode("utf-16-le")
    result = await run(make(tmp_path, data), offset=32_760, limit=20)
    assert "\ufffd" not in result.output
    assert result.metadata["display"]["text"] == "\n".join(["grüße 😀"] * 20)


async def test_binary_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="binary"):
        await run(make(tmp_path, b"\x7fELF\x01\x02\0\0\0"))


@pytest.mark.parametrize("kind", ["fifo", "device"])
async def test_pipes_and_devices_are_refused_at_once(tmp_path: Path, kind: str) -> None:
    ctx = make_context(tmp_path)
    os.mkfifo(ctx.workspace.root / "fifo")
    with pytest.raises(ToolFailure, match="only regular files"):
        await run(ctx, "fifo" if kind == "fifo" else "/dev/zero")


async def test_a_directory_is_listed(tmp_path: Path) -> None:
    ctx = make(tmp_path, b"", "b.txt")
    (ctx.workspace.root / "a").mkdir()
    (ctx.workspace.root / "new\nline").write_text("")
    result = await run(ctx, ".")
    assert result.output == "a/\nb.txt\nnew\\nline"
    assert result.title == ""
    display = result.metadata["display"]
    assert (display["entries"], display["totalEntries"], display["offset"]) == (
        ["a/", "b.txt", "new\\nline"],
        3,
        1,
    )
    assert (
        "(entries 2-2 of 3; go on with offset=3)" in (await run(ctx, ".", offset=2, limit=1)).output
    )


async def test_names_that_are_no_utf8_are_listed(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / os.fsdecode(b"caf\xe9")).touch()
    assert (await run(ctx, ".")).output == "caf\ufffd"


async def test_a_missing_file_suggests_similar_names(tmp_path: Path) -> None:
    ctx = make(tmp_path, b"", "settings.py")
    with pytest.raises(ToolFailure) as caught:
        await run(ctx, "setings.py")
    assert str(caught.value).endswith("Similar paths:\nsettings.py")


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolFailure, match="does not exist"):
        await run(make_context(tmp_path), "nowhere/at/all")


async def test_an_image_comes_as_an_attachment(tmp_path: Path) -> None:
    data = png(3, 2)
    ctx = make(tmp_path, data, "a.png")
    result = await run(ctx, "a.png")
    (part,) = result.attachments
    assert (part.mime, part.filename, part.session_id, part.message_id) == (
        "image/png",
        "a.png",
        ctx.session_id,
        ctx.message_id,
    )
    assert part.id.startswith("prt_")
    assert base64.b64decode(part.url.removeprefix("data:image/png;base64,")) == data
    assert "3 x 2 pixels" in result.output


@pytest.mark.slow
async def test_an_image_that_is_too_large_is_scaled_down(tmp_path: Path) -> None:
    ctx = make(tmp_path, encoded(noise(2600, 1300), "PNG"), "a.png")
    result = await run(ctx, "a.png")
    (part,) = result.attachments
    assert part.mime == "image/jpeg"
    data = base64.b64decode(part.url.removeprefix("data:image/jpeg;base64,"))
    assert len(data) <= READ_IMAGE.value
    assert (
        f"({len(data):,} bytes, 2000 x 1000 pixels, scaled down from 2600 x 1300)" in result.output
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (png(90_000, 900), "90000 x 900 pixels"),
        (png(3, 2)[:30], "broken"),
        (b"\xff\xd8\xff\xe0garbage", "broken"),
        (b"\x89PNG\r\n\x1a\n" + bytes(4_000_000), "broken"),
    ],
)
async def test_an_image_that_no_service_takes_is_refused(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    with pytest.raises(ToolFailure, match=reason):
        await run(make(tmp_path, data))


async def test_a_pdf_comes_as_an_attachment(tmp_path: Path) -> None:
    (part,) = (await run(make(tmp_path, b"%PDF-1.7\n..."))).attachments
    assert part.mime == "application/pdf"


async def test_a_notebook_is_read_as_cells(tmp_path: Path) -> None:
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "text": ["4\n"]},
        {"output_type": "display_data", "data": {"image/png": "aaaa", "text/plain": "<Figure>"}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no"},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": "print(2 + 2)", "outputs": outputs},
    ]
    result = await run(
        make(tmp_path, msgspec.json.encode({"cells": cells, "nbformat": 4}), "n.ipynb"), "n.ipynb"
    )
    assert result.metadata["display"]["text"] == (
        "[cell 1: markdown]\n# Title\ntext\n\n[cell 2: code]\nprint(2 + 2)\n[output of cell 2]\n4\n"
        "[output of cell 2]\n<Figure>\n(PNG picture, not shown)\n[output of cell 2]\nValueError: no"
    )


async def test_a_broken_notebook_is_read_as_text(tmp_path: Path) -> None:
    assert (
        '1: {"cells": [' in (await run(make(tmp_path, b'{"cells": [', "n.ipynb"), "n.ipynb")).output
    )


async def test_instructions_of_the_folder_are_loaded_once(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    (root / "a" / "b").mkdir(parents=True)
    (root / "AGENTS.md").write_text("of the root")
    (root / "a" / "AGENTS.md").write_text("of a")
    (root / "a" / "b" / "CLAUDE.md").write_text("of b")
    (root / "a" / "b" / "f").write_text("x\n")
    (root / "f").write_text("y\n")
    assert (await run(ctx)).metadata["loaded"] == []
    first = await run(ctx, "a/b/f")
    assert first.metadata["loaded"] == [str(root / "a/AGENTS.md"), str(root / "a/b/CLAUDE.md")]
    assert first.output.index("of a") < first.output.index("of b")
    assert "of the root" not in first.output
    again = await run(ctx, "a/b/f")
    assert again.metadata["loaded"] == []
    assert "of a" not in again.output


async def test_a_rule_for_some_files_comes_with_the_first_of_them(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    root = ctx.workspace.root
    (root / ".claude/rules").mkdir(parents=True)
    (root / ".claude/rules/py.md").write_text("---\npaths: '**/*.py'\n---\nwrite types")
    for name in ("a.py", "b.py", "c.txt"):
        (root / name).write_text("x\n")
    assert (await run(ctx, "c.txt")).metadata["loaded"] == []
    first = await run(ctx, "a.py")
    assert "write types\n" in first.output
    assert "paths:" not in first.output
    assert (await run(ctx, "b.py")).metadata["loaded"] == []


async def test_instructions_are_never_loaded_from_outside(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (tmp_path / "secret").write_text("secret words")
    (ctx.workspace.root / "a").mkdir()
    (ctx.workspace.root / "a" / "AGENTS.md").symlink_to(tmp_path / "secret")
    (ctx.workspace.root / "a" / "f").write_text("x\n")
    assert "secret" not in (await run(ctx, "a/f")).output


async def test_outside_is_asked_by_the_real_target(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["external_directory"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_text("secret")
    (ctx.workspace.root / "link").symlink_to(tmp_path / "out")
    for path in ("link/f", "link", "../out/f"):
        with pytest.raises(Denied):
            await run(ctx, path)
    assert {need.patterns for need in ctx.asked} == {
        (f"{tmp_path / 'out'}/f",),
        (f"{tmp_path / 'out'}/*",),
    }
    assert {need.always for need in ctx.asked} == {(f"{tmp_path / 'out'}/*",)}


async def test_a_denied_file_is_not_read(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, deny=["read:*.env"])
    (ctx.workspace.root / ".env").write_text("KEY=1")
    (ctx.workspace.root / "innocent").symlink_to(".env")
    for path in (".env", "innocent"):
        with pytest.raises(Denied):
            await run(ctx, path)


@pytest.mark.slow
async def test_a_line_of_fifty_megabytes_costs_no_memory(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    file = ctx.workspace.root / "f"
    with file.open("wb") as out:
        for _ in range(50):
            out.write(b"x" * (1 << 20))
        out.write(b"\nlast\n")
    await run(ctx)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await run(ctx)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000
    assert len(result.output) < 3_000
    assert result.output.endswith("\n2: last")


RULE = """

class Rule{}:
    def compile(self):
        return {}

    @property
    def size(self):
        return 0
"""
LONG = "import os\n" + "".join(RULE.format(n, n) for n in range(120))


async def test_a_long_file_is_its_start_and_an_outline_with_the_end_of_each_block(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "rules.py").write_text(LONG)
    result = await read.run(ReadParams("rules.py"), ctx)
    lines, outline = result.output.split(
        "\n\n(lines 1-100 of 1081; offset=101 goes on)\n\nOutline (`symbol` reads one):\n"
    )
    assert lines.splitlines()[-1].startswith("100: ")
    rows = outline.splitlines()
    assert rows[:3] == ["Rule0 4-10", "Rule0.size 8-10", "Rule1 13-19"]
    assert rows[-2:] == ["Rule119 1075-1081", "(210 more)"], (
        "the smallest methods are left out where all are too many"
    )
    assert len(result.output) < 6_000
    assert (await read.run(ReadParams("rules.py", offset=1), ctx)).output.count("\n") > 1_000, (
        "named lines are given"
    )


async def test_a_symbol_is_read_by_its_name(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "rules.py").write_text(LONG)
    result = await read.run(ReadParams("rules.py", symbol="Rule1.size"), ctx)
    assert result.output == (
        "17:     @property\n18:     def size(self):\n19:         return 0\n\n(lines 17-19 of 1081)"
    )
    several = await read.run(ReadParams("rules.py", symbol="compile()"), ctx)
    assert several.output.startswith("5:     def compile(self):\n6:         return 0\n")
    assert "\n\n14:     def compile(self):\n15:         return 1\n" in several.output, (
        "short ones are shown"
    )
    assert several.output.endswith(
        "\n\n(`compile()` is also at lines 59-60, 68-69, 77-78 and 111 more)"
    )


async def test_a_symbol_is_found_in_a_folder(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    for name, text in (
        ("a/rule.go", "package a\n\nfunc (r *Rule) Match() int {\n\treturn 1\n}\n"),
        ("b.py", "Match()\n"),
    ):
        (ctx.workspace.root / name).parent.mkdir(exist_ok=True)
        (ctx.workspace.root / name).write_text(text)
    one = await read.run(ReadParams(".", symbol="Rule.Match"), ctx)
    assert (
        one.output
        == "a/rule.go\n3: func (r *Rule) Match() int {\n4: \treturn 1\n5: }\n\n(lines 3-5 of 5)"
    )
    (ctx.workspace.root / "c.py").write_text("def Match(): ...\n")
    several = await read.run(ReadParams(".", symbol="Match"), ctx)
    assert several.output.startswith("c.py\n1: def Match(): ...")
    assert several.output.endswith(
        "\n\na/rule.go\n3: func (r *Rule) Match() int {\n4: \treturn 1\n5: }\n\n(lines 3-5 of 5)"
    )
    (ctx.workspace.root / "d.py").write_text("def Match():\n" + "    pass\n" * 60)
    long = await read.run(ReadParams(".", symbol="Match"), ctx)
    assert long.output.endswith("\n\n(also defined in d.py, a/rule.go)")
    with pytest.raises(ToolFailure, match=r"^No file in a defines `match`\.$"):
        await read.run(ReadParams("a", symbol="match"), ctx)


async def test_the_outlines_of_a_folder_share_its_bytes_fairly(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="read", pattern="secret.py", action="ask"),)
    one = "class Small:\n    def run(self): ...\n"
    files = {
        "a.py": one,
        "lib/b.js": "function run() {\n}\n",
        "secret.py": one,
        "notes.txt": "run",
        "built.py": one,
    }
    for name, text in {**files, ".gitignore": "built.py\n", "broken.py": "\xff\x00"}.items():
        (ctx.workspace.root / name).parent.mkdir(exist_ok=True)
        (ctx.workspace.root / name).write_text(text, "latin-1")
    small = await read.run(ReadParams(".", symbol="*"), ctx)
    assert small.output == "a.py (2 lines)\nSmall 1-2\nSmall.run 2-2\n\nlib/b.js (2 lines)\nrun 1-2"
    methods = "".join(f"    def method_{number}(self): ...\n" for number in range(1_000))
    for name in ("lib/large.py", "lib/other.py"):
        (ctx.workspace.root / name).write_text(f"class Large:\n{methods}")
    shared = await read.run(ReadParams(".", symbol="*"), ctx)
    assert shared.output.startswith(small.output), "what the small ones need is theirs"
    sizes = [part.count("\n") for part in shared.output.split("\n\n")[2:]]
    assert len(sizes) == 2
    assert abs(sizes[0] - sizes[1]) < 3
    assert 100 < sizes[0] < 900
    assert shared.output.count("Large 1-1001\n") == 2
    assert " more)" in shared.output.splitlines()[-1]
    assert 15_000 < len(shared.output) <= OUTLINE_BYTES.value
    stamp = ctx.workspace.read_log.find_last_stamp(ctx.session_id, ctx.workspace.root / "a.py")
    assert stamp is None, "no file was read"


@pytest.mark.slow
async def test_a_folder_of_many_files_names_how_many_are_not_outlined(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "lib" / "deep").mkdir(parents=True)
    for number in range(OUTLINE_FILES.value + 3):
        (ctx.workspace.root / "lib" / "deep" / f"m{number}.py").write_text("def run(): ...\n")
    (ctx.workspace.root / "lib" / "top.py").write_text("def first(): ...\n")
    result = await read.run(ReadParams("lib", symbol="*"), ctx)
    assert "lib/top.py (1 line)\nfirst 1-1" in result.output, "those nearest to the top come first"
    assert result.output.endswith("\n\n(4 more files are not shown; name a folder below lib)")


async def test_a_symbol_of_a_file_that_may_not_be_read_unasked_is_not_found_in_its_folder(
    tmp_path: Path,
) -> None:
    ctx = make_context(tmp_path)
    ctx.rules = (PermissionRule(permission="read", pattern="secret.py", action="ask"),)
    (ctx.workspace.root / "secret.py").write_text("def find(): ...\n")
    with pytest.raises(ToolFailure, match=r"^No file in \. defines"):
        await read.run(ReadParams(".", symbol="find"), ctx)


async def test_a_symbol_that_is_not_there_is_answered_with_what_is(tmp_path: Path) -> None:
    ctx = make_context(tmp_path)
    (ctx.workspace.root / "rules.py").write_text("class Rule:\n    def compile(self): ...\n")
    with pytest.raises(ToolFailure) as failed:
        await read.run(ReadParams("rules.py", symbol="Rule.comple"), ctx)
    assert str(failed.value) == "rules.py has no `Rule.comple`. Did you mean `compile`?"
    assert failed.value.advice == "It has: Rule 1-2, Rule.compile 2-2"
