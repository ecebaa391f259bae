"""Files and folders as a client sees them: real files, a real repository."""

import base64
import os
import socket
from pathlib import Path

import pytest

from codeloop.app.handlers.workspace import files
from codeloop.schema.api.files import (
    FILE_LIST,
    FILE_READ,
    FILE_STATUS,
    FileContent,
    FileNode,
    FileQuery,
)
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import Limit
from codeloop.schema.operation import NoArguments
from tests.support.scripted_project import ScriptedProject, open_scripted_project, wait_for_result
from tests.workspace.snapshot.trees_on_disk import git, repository, write

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def listed(it: ScriptedProject, path: str = "") -> list[FileNode]:
    return await it.client.call(FILE_LIST, FileQuery(path=path))


async def content(it: ScriptedProject, path: str) -> FileContent:
    return await wait_for_result(it.client.call(FILE_READ, FileQuery(path=path)))


async def test_a_folder_is_listed_folders_first_without_git(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "work", {"b.txt": "", "a/x.txt": "", ".gitignore": "*.log\nout/\n", "Z/y": ""}
    )
    write(root, {"n.log": "", "out/n": "", "a/n.log": ""})
    async with open_scripted_project(tmp_path, []) as it:
        found = await listed(it)
        assert [(each.path, each.type, each.ignored) for each in found] == [
            ("Z/", "directory", False),
            ("a/", "directory", False),
            ("out/", "directory", True),
            (".gitignore", "file", False),
            ("b.txt", "file", False),
            ("n.log", "file", True),
        ]
        assert found[1].absolute == str(root / "a")
        assert found == await listed(it, ".")
        assert [(each.path, each.ignored) for each in await listed(it, "a")] == [
            ("a/n.log", True),
            ("a/x.txt", False),
        ]
        assert [(each.path, each.ignored) for each in await listed(it, "out/")] == [("out/n", True)]
        assert [each.name for each in await listed(it, str(root / "a"))] == ["n.log", "x.txt"]


async def test_nearer_rules_and_those_outside_of_the_tree_say_what_is_ignored(
    tmp_path: Path,
) -> None:
    root = repository(
        tmp_path / "work", {".gitignore": "*.a\n", "in/.gitignore": "!keep.a\n", "in/.h/x": ""}
    )
    write(
        root,
        {
            "in/keep.a": "",
            "in/lose.a": "",
            "in/b.mine": "",
            "in/c.global": "",
            "in/.h/c.global": "",
        },
    )
    write(root, {".git/info/exclude": "*.mine\n"})
    write(tmp_path / "home", {".config/git/ignore": "*.global\n"})
    async with open_scripted_project(tmp_path, []) as it:
        found = {each.name: each.ignored for each in await listed(it, "in")}
        assert found == {
            **dict.fromkeys((".gitignore", ".h", "keep.a"), False),
            **dict.fromkeys(("lose.a", "b.mine", "c.global"), True),
        }
        assert {each.name: each.ignored for each in await listed(it, "in/.h")} == {
            "x": False,
            "c.global": True,
        }


async def test_paths_are_relative_to_the_directory_also_above_it(tmp_path: Path) -> None:
    repository(tmp_path, {"top.txt": "t\n", "work/in.txt": "i\n", ".gitignore": "home\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert [each.path for each in await listed(it, "..")] == [
            "../home/",
            "./",
            "../.gitignore",
            "../top.txt",
        ]
        assert (await content(it, "../top.txt")).content == "t"
        write(tmp_path, {"top.txt": "T\n", "work/in.txt": "I\n"})
        assert [each.path for each in await it.client.call(FILE_STATUS, NoArguments())] == [
            "../top.txt",
            "in.txt",
        ]


async def test_a_missing_folder_and_a_file_are_no_folders(tmp_path: Path) -> None:
    write(tmp_path / "work", {"a.txt": ""})
    async with open_scripted_project(tmp_path, []) as it:
        for path in ("nowhere", "no/where"):
            with pytest.raises(CodeloopError, match="not found"):
                await listed(it, path)
        with pytest.raises(CodeloopError, match="not a folder"):
            await listed(it, "a.txt")


async def test_text_is_trimmed_at_its_end_only(tmp_path: Path) -> None:
    write(tmp_path / "work", {"a.txt": "\n  one\ntwo  \n\n\n", "empty": ""})
    (tmp_path / "work/wide.txt").write_bytes("\ufeffgrün\r\n".encode("utf-16-le"))
    (tmp_path / "work/latin.txt").write_bytes("grün\n".encode("latin-1"))
    async with open_scripted_project(tmp_path, []) as it:
        assert await content(it, "a.txt") == FileContent(type="text", content="\n  one\ntwo")
        assert await content(it, "empty") == FileContent(type="text", content="")
        assert await content(it, "missing/file") == FileContent(type="text", content="")
        assert (await content(it, "wide.txt")).content == "grün"
        assert (await content(it, "latin.txt")).content == "grün"


async def test_what_is_no_text_comes_in_base64_with_its_type(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "p.png").write_bytes(PNG)
    (root / "named.jpg").write_bytes(PNG)
    (root / "x.bin").write_bytes(b"\0\1\2")
    (root / "y.zip").write_bytes(b"PK\3\4\0\0")
    write(root, {"v.svg": "<svg/>\n"})
    async with open_scripted_project(tmp_path, []) as it:
        found = await content(it, "p.png")
        assert (found.type, found.encoding, found.mime_type) == ("binary", "base64", "image/png")
        assert base64.b64decode(found.content) == PNG
        assert (await content(it, "named.jpg")).mime_type == "image/png"
        assert (await content(it, "x.bin")).mime_type == "application/octet-stream"
        assert (await content(it, "y.zip")).mime_type == "application/zip"
        assert await content(it, "v.svg") == FileContent(type="text", content="<svg/>")


async def test_a_file_that_differs_from_the_last_commit_comes_with_the_difference(
    tmp_path: Path,
) -> None:
    root = repository(
        tmp_path / "work", {"sub/a.txt": "".join(f"{n}\n" for n in range(30)), "same.txt": "s\n"}
    )
    write(
        root,
        {
            "sub/a.txt": "".join(f"{n}\n" for n in range(30)).replace("15\n", "x\n")[:-1],
            "new.txt": "n\n",
        },
    )
    async with open_scripted_project(tmp_path, []) as it:
        found = await content(it, "sub/a.txt")
        assert found.diff is not None
        assert found.patch is not None
        assert found.diff.startswith("Index: sub/a.txt\n")
        [hunk] = found.patch.hunks
        assert (found.patch.old_file_name, hunk.old_start, hunk.old_lines, hunk.new_lines) == (
            "sub/a.txt",
            1,
            30,
            30,
        )
        assert [line for line in hunk.lines if not line.startswith(" ")] == [
            *("-15", "+x", "-29", "+29", "\\ No newline at end of file"),
        ]
        assert len(hunk.lines) == 28 + 5
        for path in ("same.txt", "new.txt"):
            assert (await content(it, path)).diff is None
        git(root, "add", "-A")
        assert (await content(it, "sub/a.txt")).diff == found.diff
        git(root, "commit", "-q", "-m", "next")
        assert (await content(it, "sub/a.txt")).diff is None


async def test_line_ends_alone_make_no_difference(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "1\n2\n"})
    (root / "a.txt").write_bytes(b"1\r\n2\r\n")
    async with open_scripted_project(tmp_path, []) as it:
        assert await content(it, "a.txt") == FileContent(type="text", content="1\r\n2")


async def test_a_larger_file_and_a_larger_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "work", {"big.txt": "x" * 101, "fits.txt": "x" * 100})
    monkeypatch.setattr(
        files, "FILES_CONTENT", Limit("files.content", 100, "bytes", "for this test")
    )
    from codeloop.workspace.files import folder_listing

    async with open_scripted_project(tmp_path, []) as it:
        assert len((await content(it, "fits.txt")).content) == 100
        with pytest.raises(CodeloopError, match="101 bytes"):
            await content(it, "big.txt")
        assert len(await listed(it)) == 2
        monkeypatch.setattr(
            folder_listing, "FILES_ENTRIES", Limit("files.entries", 1, "count", "for this test")
        )
        with pytest.raises(CodeloopError, match="more than 1 entries"):
            await listed(it)


async def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    os.mkfifo(root / "pipe")
    (root / "leads").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # a socket's path has at most 107 characters
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        async with open_scripted_project(tmp_path, []) as it:
            for path, why in (
                ("pipe", "named pipe"),
                ("leads", "named pipe"),
                ("sock", "socket"),
                (".", "directory"),
            ):
                with pytest.raises(CodeloopError, match=why):
                    await content(it, path)
            assert [(each.name, each.type) for each in await wait_for_result(listed(it))] == [
                *(("leads", "file"), ("pipe", "file"), ("sock", "file")),
            ]


async def test_names_that_are_no_characters_are_shown_so_that_json_holds(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    Path(os.fsdecode(os.fsencode(root) + b"/odd\xff")).write_text("x")
    (root / "line\nfeed").write_text("x")
    async with open_scripted_project(tmp_path, []) as it:
        assert [each.name for each in await listed(it)] == ["line\nfeed", "odd\ufffd"]
        assert (await content(it, "line\nfeed")).content == "x"


async def test_links_inside_of_the_work_tree_are_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"real/a.txt": "a\n"})
    (root / "folder").symlink_to("real")
    (root / "chain").symlink_to("folder/a.txt")
    (root / "loop").symlink_to("loop")
    async with open_scripted_project(tmp_path, []) as it:
        assert [(each.path, each.type) for each in await listed(it)] == [
            *(
                ("folder/", "directory"),
                ("real/", "directory"),
                ("chain", "file"),
                ("loop", "file"),
            ),
        ]
        assert [each.path for each in await listed(it, "folder")] == ["folder/a.txt"]
        assert (await content(it, "chain")).content == "a"
        with pytest.raises(CodeloopError):
            await content(it, "loop")
