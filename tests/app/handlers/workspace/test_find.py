"""Searches in files and for their names: real files, real ripgrep."""

import asyncio
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.api.files import (
    FIND_FILES,
    FIND_SYMBOLS,
    FIND_TEXT,
    FS_FIND,
    FindFiles,
    FindSymbols,
    FindText,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import FILES_LINE, FILES_LINES, Limit
from codeloop.workspace.search import file_index as module
from codeloop.workspace.search.ripgrep import Ripgrep
from tests.support.scripted_project import ScriptedProject, open_scripted_project
from tests.workspace.snapshot.trees_on_disk import repository, write


async def names(it: ScriptedProject, query: str, **more: Any) -> list[str]:
    return await it.client.call(FIND_FILES, FindFiles(query=query, **more))


async def test_lines_come_with_their_place_in_the_file(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "work",
        {"src/a.py": "first\nüber abc abc\n", "b.txt": "abc\n", ".gitignore": "*.log\n"},
    )
    write(root, {"noise.log": "abc\n", ".hidden": "abc"})
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(FIND_TEXT, FindText(pattern="a(b)c"))
        assert [(each.path.text, each.line_number, each.absolute_offset) for each in found] == [
            (".hidden", 1, 0),
            ("b.txt", 1, 0),
            ("src/a.py", 2, 6),
        ]
        assert found[2].lines.text == "über abc abc\n"
        assert [(each.match.text, each.start, each.end) for each in found[2].submatches] == [
            ("abc", 6, 9),
            ("abc", 10, 13),
        ]
        line = found[2].lines.text.encode()
        assert all(line[each.start : each.end] == b"abc" for each in found[2].submatches)
        assert await it.client.call(FIND_TEXT, FindText(pattern="nowhere at all")) == []
        assert len(await it.client.call(FIND_TEXT, FindText(pattern="--version|abc"))) == 3
        assert len(await it.client.call(FIND_TEXT, FindText(pattern=r"(?<=ü)ber"))) == 1


async def test_a_bad_pattern_is_refused_with_ripgreps_words(tmp_path: Path) -> None:
    write(tmp_path / "work", {"a": "a"})
    async with open_scripted_project(tmp_path, []) as it:
        for pattern, why in (
            ("a(", "unclosed group"),
            ("a\0b", "NUL"),
            ("a\nb", "not allowed"),
            ("(?<=a", "missing"),
        ):
            with pytest.raises(CodeloopError, match=why):
                await it.client.call(FIND_TEXT, FindText(pattern=pattern))


async def test_bytes_that_are_no_text_do_not_break_a_line_or_its_offsets(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "latin.txt").write_bytes(b"caf\xe9 abc\n")
    (root / os.fsdecode(b"odd\xff\nname")).write_text('say "abc" \\ \u2028 \x1b[0m\n')
    (root / "binary").write_bytes(b"abc\0abc\n")
    async with open_scripted_project(tmp_path, []) as it:
        found = {
            each.path.text: each
            for each in await it.client.call(FIND_TEXT, FindText(pattern="abc"))
        }
        assert found["latin.txt"].lines.text == "caf\ufffd abc\n"
        assert found["odd\ufffd\nname"].lines.text == 'say "abc" \\ \u2028 \x1b[0m\n'
        for line in found.values():
            for each in line.submatches:
                assert line.lines.text.encode()[each.start : each.end] == b"abc"


async def test_a_million_matches_are_capped(tmp_path: Path) -> None:
    write(tmp_path / "work", {"many.txt": "abc\n" * 1_000_000, "z.txt": "abc\n"})
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(FIND_TEXT, FindText(pattern="abc"))
        assert len(found) == FILES_LINES.value


@pytest.mark.parametrize("pattern", ["x{5}", "needle", pytest.param("x", marks=pytest.mark.slow)])
async def test_a_line_of_fifty_megabytes_is_cut_in_flat_memory(
    tmp_path: Path, pattern: str
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    with (root / "long.txt").open("wb") as file:
        file.write(b"first\n")
        for _ in range(50):
            file.write(b'x"\\\xc3\xbc ' * 170_000)
        file.write(b"xxxxx needle\nafter\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with open_scripted_project(tmp_path, []) as it:
        it.project.workspace.ripgrep = Ripgrep(600)
        [found] = await it.client.call(FIND_TEXT, FindText(pattern=pattern))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024
    assert (found.line_number, found.absolute_offset) == (2, 6)
    assert found.lines.text.startswith('x"\\ü x"\\ü ')
    assert FILES_LINE.value - 4 <= len(found.lines.text.encode()) <= FILES_LINE.value
    assert all(each.end <= FILES_LINE.value for each in found.submatches)
    assert bool(found.submatches) == (pattern == "x")


async def test_a_pattern_that_never_ends_is_stopped(tmp_path: Path) -> None:
    write(tmp_path / "work", {"a.txt": "a" * 5_000 + "\n"})
    async with open_scripted_project(tmp_path, []) as it:
        async with asyncio.timeout(60):
            assert await it.client.call(FIND_TEXT, FindText(pattern="(a*)*(a*)*(a*)*(a*)*b")) == []
            await it.client.call(FIND_TEXT, FindText(pattern=r"(?=x)|(a+)+\1b"))


FILES = [
    *("README.md", "docs/files.md", "profiles.txt", ".github/files.yml", "tests/app/test_files.py"),
    *(
        "src/codeloop/app/handlers/vcs.py",
        "src/codeloop/app/handlers/files.py",
        "src/codeloop/app/app.py",
    ),
    *("src/codeloop/files/reader.py", "src/codeloop/app/my_files.py"),
]


async def test_the_best_name_comes_first(tmp_path: Path) -> None:
    write(tmp_path / "work", dict.fromkeys(FILES, ""))
    async with open_scripted_project(tmp_path, []) as it:
        assert await names(it, "files") == [
            "src/codeloop/files/",
            "docs/files.md",
            "src/codeloop/app/handlers/files.py",
            ".github/files.yml",
            "tests/app/test_files.py",
            "src/codeloop/app/my_files.py",
            "profiles.txt",
            "src/codeloop/files/reader.py",
        ]
        assert (await names(it, "app"))[:3] == [
            "tests/app/",
            "src/codeloop/app/",
            "src/codeloop/app/app.py",
        ]
        assert (await names(it, "app.py"))[0] == "src/codeloop/app/app.py"
        assert (await names(it, "APP.PY"))[0] == "src/codeloop/app/app.py"
        assert (await names(it, "src/codeloop/app/app.py"))[0] == "src/codeloop/app/app.py"
        assert (await names(it, "handlers/"))[0] == "src/codeloop/app/handlers/"
        assert (await names(it, "apphandvcs")) == ["src/codeloop/app/handlers/vcs.py"]
        assert (await names(it, "hand vcs")) == ["src/codeloop/app/handlers/vcs.py"]
        assert (await names(it, "rdm"))[0] == "README.md"
        assert (await names(it, "./readme")) == ["README.md"]
        assert await names(it, "q") == []
        assert "docs/files.md" in await names(it, "dm")


async def test_kinds_and_limits_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "work", dict.fromkeys(FILES, ""))
    async with open_scripted_project(tmp_path, []) as it:
        folders = ["tests/app/", "src/codeloop/app/", "src/codeloop/app/handlers/"]
        assert await names(it, "app", type="directory") == folders
        assert not any(each.endswith("/") for each in await names(it, "app", dirs=False))
        assert len(await names(it, "e", limit=2)) == 2
        for wrong in (0, 201, -1):
            with pytest.raises(CodeloopError, match="limit"):
                await names(it, "e", limit=wrong)
        with pytest.raises(CodeloopError, match="longer than"):
            await names(it, "x" * 501)


async def test_without_a_query_the_uppermost_names_come_and_hidden_ones_last(
    tmp_path: Path,
) -> None:
    write(tmp_path / "work", dict.fromkeys(FILES, ""))
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(FS_FIND, FindFiles(query=""))
        assert [(each.path, each.type) for each in found.data[:5]] == [
            ("README.md", "file"),
            ("docs/", "directory"),
            ("profiles.txt", "file"),
            ("src/", "directory"),
            ("tests/", "directory"),
        ]
        assert len(found.data) == 19
        assert [each.path for each in found.data][-2:] == [".github/", ".github/files.yml"]
        assert found.location.directory == str(it.work)
        assert [
            each.path for each in (await it.client.call(FS_FIND, FindFiles(query="vcs"))).data
        ] == [FILES[5]]


async def test_ignored_files_are_not_offered_and_symbols_are_not_known(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"kept.txt": "", ".gitignore": "out\n"})
    write(root, {"out/left.txt": ""})
    async with open_scripted_project(tmp_path, []) as it:
        assert await names(it, "txt") == ["kept.txt"]
        assert await it.client.call(FIND_SYMBOLS, FindSymbols(query="x")) == []


async def test_a_list_that_aged_is_renewed_behind_the_one_who_asks_and_an_old_one_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    write(root, {"a.txt": ""})
    for limit in ("FILES_AGE", "FILES_STALE"):
        monkeypatch.setattr(module, limit, Limit("files.test", 3_600_000, "ms", "for this test"))
    async with open_scripted_project(tmp_path, []) as it:
        assert await names(it, "txt") == ["a.txt"]
        write(root, {"b.txt": ""})
        assert await names(it, "txt") == ["a.txt"], "the list is not kept"
        monkeypatch.setattr(module, "FILES_AGE", Limit("files.age", 0, "ms", "for this test"))
        assert await names(it, "txt") == ["a.txt"], "the list is waited for"
        async with asyncio.timeout(60):
            while await names(it, "txt") != ["a.txt", "b.txt"]:
                await asyncio.sleep(0.01)
        write(root, {"c.txt": ""})
        monkeypatch.setattr(module, "FILES_STALE", Limit("files.stale", 0, "ms", "for this test"))
        await names(it, "txt")  # perhaps waits for a list that was begun before
        assert await names(it, "txt") == ["a.txt", "b.txt", "c.txt"]


async def test_names_of_any_kind_are_found(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for name in (
        b"odd\xff",
        b"new\nline",
        "İstanbul.txt".encode(),
        b"[a-z]*+?.py",
        b"white space.md",
    ):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("")
    async with open_scripted_project(tmp_path, []) as it:
        assert await names(it, "odd") == ["odd\ufffd"]
        assert await names(it, "newline") == ["new\nline"]
        assert await names(it, "tanbul") == ["İstanbul.txt"]
        assert await names(it, "*+?") == ["[a-z]*+?.py"]
        assert await names(it, "white space") == ["white space.md"]
        assert await names(it, "\\d\\w(") == []
