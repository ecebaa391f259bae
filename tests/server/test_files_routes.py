"""Files, searches and version control over HTTP: the contract's shapes,
and nothing from outside of the work tree.
"""

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.support.serving import Served, served
from tests.support.audit_hook import add_audit
from tests.workspace.snapshot.trees_on_disk import repository, write

SECRET = "the secret outside"
NODE = {"name", "path", "absolute", "type", "ignored"}


def outside(tmp_path: Path) -> Path:
    """Make a work tree with every kind of link out of it."""
    root = repository(tmp_path / "work", {"in.txt": "inside\n", "sub/deep.txt": "deep\n"})
    write(tmp_path, {"secret/key.txt": SECRET, "work-evil/key.txt": SECRET})
    links = {
        "file": tmp_path / "secret/key.txt",
        "relative": "../secret/key.txt",
        "folder": tmp_path / "secret",
        "chain": "chain2",
        "chain2": "sub/chain3",
        "sub/chain3": "../../secret/key.txt",
        "dangling": tmp_path / "secret/none.txt",
        "magic": "/proc/self/root",
        "neighbour": "../work-evil",
        "top": "/",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


def ways_out(tmp_path: Path) -> list[str]:
    """Return paths that lead out of the work tree."""
    secret = str(tmp_path / "secret/key.txt")
    return [
        *(
            "..",
            "../secret",
            "../secret/key.txt",
            "sub/../../secret/key.txt",
            "../work-evil/key.txt",
            "//",
            "/",
            "/etc",
        ),
        *(secret, "/" + secret, f"/proc/self/root{secret}", f"/proc/thread-self/root{secret}"),
        *(
            "file",
            "relative",
            "folder",
            "folder/key.txt",
            "folder/none.txt",
            "chain",
            "dangling",
            "magic",
            "neighbour",
        ),
        *(
            f"magic{secret}",
            "neighbour/key.txt",
            f"top{secret}",
            "/dev/zero",
            "/proc/self/environ",
            "~root",
            "..\\..",
        ),
    ]


async def ask(it: Served, route: str, status: int = 200, **query: str) -> Any:
    """Ask a route and return its JSON; fails when the status is another."""
    response = await it.http.get(route, params=query)
    assert response.status_code == status, response.text
    return response.json()


async def refusal(it: Served, route: str, **query: str) -> httpx2.Response:
    return await asyncio.wait_for(it.http.get(route, params=query), 60)


@pytest.mark.slow
async def test_no_route_reads_what_is_outside_of_the_work_tree(tmp_path: Path) -> None:
    outside(tmp_path)
    async with served(tmp_path) as it:
        for route in ("/file", "/file/content"):
            for path in ways_out(tmp_path):
                response = await refusal(it, route, path=path)
                assert SECRET not in response.text
                if path.startswith(("~", "..\\")):  # plain names here, which nothing has
                    assert response.status_code == (404 if route == "/file" else 200)
                    continue
                assert response.status_code == 400, f"{route} {path}: {response.text}"
                assert response.json()["name"] == "BadRequest"
                assert "outside of the work tree" in response.json()["data"]["message"]
        nodes = await ask(it, "/file", path=".")
        assert {
            each["name"]: each["type"] for each in nodes if "sub" not in each["path"]
        } == dict.fromkeys(
            [
                *(
                    "chain",
                    "chain2",
                    "dangling",
                    "file",
                    "folder",
                    "in.txt",
                    "magic",
                    "neighbour",
                    "relative",
                    "top",
                ),
            ],
            "file",
        )
        assert await ask(it, "/find", pattern="secret outside") == []
        assert await ask(it, "/find/file", query="key") == []
        assert (await ask(it, "/api/fs/find", query="key"))["data"] == []
        for route, query in (
            ("/vcs/diff", {"mode": "git"}),
            ("/vcs/diff", {"mode": "branch"}),
            ("/vcs/status", {}),
        ):
            response = await it.http.get(route, params=query)
            assert response.status_code == 200
            assert SECRET not in response.text
        assert SECRET not in (await it.http.get("/file/status")).text


async def test_a_tracked_folder_that_became_a_link_is_deleted_not_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"sub/key.txt": "inside\n"})
    write(tmp_path, {"secret/key.txt": SECRET})
    (root / "sub/key.txt").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(tmp_path / "secret")
    async with served(tmp_path) as it:
        found = {each["file"]: each for each in await ask(it, "/vcs/diff", mode="git")}
        assert found["sub/key.txt"]["status"] == "deleted"
        assert SECRET not in str(found)
        await ask(it, "/file/content", status=400, path="sub/key.txt")


async def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(root, {"real/key.txt": "inside"})
    write(tmp_path, {"secret/key.txt": SECRET})
    (root / "flip").symlink_to("real")
    async with served(tmp_path) as it:
        assert (await ask(it, "/file/content", path="flip/key.txt"))["content"] == "inside"
        relink(root / "flip", tmp_path / "secret")
        assert SECRET not in str(await ask(it, "/file/content", status=400, path="flip/key.txt"))


@pytest.mark.parametrize(
    ("flipped", "before", "route", "status"),
    [
        # Where the link led when it was judged is what is read.
        (
            "flip",
            "/",
            "/file/content",
            200,
        ),
        ("real", "/", "/file/content", 400),
        ("real", "real", "/file/content", 400),
        ("real", "key.txt", "/file/content", 200),  # the folder itself is open by then
        ("real/key.txt", "/", "/file/content", 400),
        ("real/key.txt", "key.txt", "/file/content", 400),
        ("flip", "/", "/file", 200),
        ("real", "/", "/file", 400),
        ("real", "real", "/file", 400),
        ("real", ".", "/file", 200),
    ],
)
async def test_a_path_that_flips_after_it_was_judged_never_leads_out(
    tmp_path: Path, flipped: str, before: str, route: str, status: int
) -> None:
    root = tmp_path / "work"
    write(root, {"real/key.txt": "inside"})
    write(tmp_path, {"secret/key.txt": SECRET, "secret/hidden.txt": SECRET})
    (root / "flip").symlink_to("real")
    target = tmp_path / "secret" / ("key.txt" if flipped.endswith(".txt") else "")
    opened: list[str] = []

    def flip(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event != "open"
            or arguments[1] is not None
            or threading.current_thread() is threading.main_thread()
        ):
            return  # only `os.open` on the threads where files are read
        opened.append(str(arguments[0]))
        if opened.count(before) == 1 and opened[-1] == before:
            relink(root / flipped, target)

    async with served(tmp_path) as it:
        with add_audit(flip):
            answer = await it.http.get(
                route, params={"path": "flip/key.txt" if route != "/file" else "flip"}
            )
    assert before in opened
    assert (root / flipped).readlink() == target
    assert answer.status_code == status
    assert SECRET not in answer.text
    if status == 200:
        shown = answer.json()
        assert (shown["content"] if route != "/file" else [each["name"] for each in shown]) in (
            "inside",
            ["key.txt"],
        )


def relink(path: Path, target: Path) -> None:
    """Put a link where something else lies, which moves aside."""
    path.rename(path.with_name("aside"))
    path.symlink_to(target)


@pytest.mark.parametrize("route", ["/file", "/file/content"])
async def test_odd_paths_are_answered(tmp_path: Path, route: str) -> None:
    write(tmp_path / "work", {"a.txt": "a"})
    async with served(tmp_path) as it:
        for path in ("a\0b", "\0"):
            assert "NUL" in (await ask(it, route, status=400, path=path))["data"]["message"]
        assert (await it.http.get(f"{route}?path=%ff%fe")).status_code in {200, 404}
        assert (await it.http.get(f"{route}?path=%ed%a0%80")).status_code in {200, 404}
        assert (await refusal(it, route, path="n" * 5_000)).status_code in {200, 400, 404}
        assert (await refusal(it, route, path="n/" * 3_000)).status_code in {200, 400, 404}
        assert (await ask(it, route, status=400))["data"]["kind"] == "Query"


async def test_pipes_and_devices_do_not_hold_a_request_up(tmp_path: Path) -> None:
    root = tmp_path / "work"
    write(root, {"a.txt": "abc\n"})
    os.mkfifo(root / "pipe")
    async with served(tmp_path) as it:
        assert (
            "named pipe"
            in (await refusal(it, "/file/content", path="pipe")).json()["data"]["message"]
        )
        assert len((await refusal(it, "/file", path="")).json()) == 2
        assert len((await refusal(it, "/find", pattern="abc")).json()) == 1
        assert (await refusal(it, "/file", path="pipe")).status_code == 400


@pytest.mark.slow
async def test_the_shapes_are_the_contracts(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n", "sub/b.txt": "b\n"})
    write(root, {"a.txt": "two\n", "n.bin": "\0"})
    async with served(tmp_path) as it:
        nodes = await ask(it, "/file", path="")
        assert nodes[0] == {
            "name": "sub",
            "path": "sub/",
            "absolute": str(root / "sub"),
            "type": "directory",
            "ignored": False,
        }
        assert all(set(each) == NODE for each in nodes)
        assert (await ask(it, "/file", status=404, path="none"))["name"] == "NotFoundError"
        assert await ask(it, "/file/content", path="none") == {"type": "text", "content": ""}
        found = await ask(it, "/file/content", path="a.txt")
        assert set(found) == {"type", "content", "diff", "patch"}
        assert found["patch"]["hunks"] == [
            {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-one", "+two"]}
        ]
        assert await ask(it, "/file/content", path="n.bin") == {
            "type": "binary",
            "content": "AA==",
            "encoding": "base64",
            "mimeType": "application/octet-stream",
        }
        assert await ask(it, "/file/status") == [
            {"path": "a.txt", "added": 1, "removed": 1, "status": "modified"},
            {"path": "n.bin", "added": 0, "removed": 0, "status": "added"},
        ]
        assert await ask(it, "/find", pattern="tw.") == [
            {
                "path": {"text": "a.txt"},
                "lines": {"text": "two\n"},
                "line_number": 1,
                "absolute_offset": 0,
                "submatches": [{"match": {"text": "two"}, "start": 0, "end": 3}],
            }
        ]
        assert "unclosed" in (await ask(it, "/find", status=400, pattern="("))["data"]["message"]
        assert await ask(it, "/find/file", query="b", type="file") == ["sub/b.txt", "n.bin"]
        assert await ask(it, "/find/file", query="sub", dirs="false") == ["sub/b.txt"]
        assert await ask(it, "/find/symbol", query="x") == []
        completions = await ask(it, "/api/fs/find", query="su", limit="20")
        assert completions["data"] == [
            {"path": "sub/", "type": "directory"},
            {"path": "sub/b.txt", "type": "file"},
        ]
        assert completions["location"]["directory"] == str(root)
        assert set(completions["location"]) == {"directory", "project"}
        assert await ask(it, "/vcs") == {"branch": "main", "default_branch": "main"}
        assert await ask(it, "/vcs/status") == [
            {"file": "a.txt", "additions": 1, "deletions": 1, "status": "modified"},
            {"file": "n.bin", "additions": 0, "deletions": 0, "status": "added"},
        ]
        first: dict[str, Any] = (await ask(it, "/vcs/diff", mode="git", context="12"))[0]
        assert set(first) == {"file", "patch", "additions", "deletions", "status"}
        assert first["patch"].endswith("@@ -1 +1 @@\n-one\n+two\n")
        for query in (
            {},
            {"mode": "other"},
            {"mode": "git", "context": "-1"},
            {"mode": "git", "context": "x"},
        ):
            assert (await ask(it, "/vcs/diff", status=400, **query))["name"] == "BadRequest"


async def test_outside_a_repository_there_is_no_version_control(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert await ask(it, "/vcs") == {}
        assert await ask(it, "/vcs/status") == []
        assert await ask(it, "/vcs/diff", mode="branch") == []
        assert await ask(it, "/file/status") == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
async def test_the_server_answers_others_while_a_search_runs(tmp_path: Path) -> None:
    write(tmp_path / "work", {"large.txt": "line of text\n" * 2_000_000})
    async with served(tmp_path) as it:
        while True:
            searching = asyncio.create_task(
                it.http.get("/find", params={"pattern": "[k-m].*[d-f].*[a-c]$"})
            )
            if pid := await stop_search(tmp_path / "work", searching):
                break
        try:
            for _ in range(10):
                await ask(it, "/global/health")
            assert not searching.done()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert (await searching).status_code == 200


async def stop_search(folder: Path, searching: asyncio.Task[Any]) -> int:
    """Stop the ripgrep that searches a folder, and return its process;
    0 when the search was over before.
    """
    while not searching.done():
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cwd").readlink() == folder and (
                    process / "comm"
                ).read_text() == "rg\n":
                    os.kill(int(process.name), signal.SIGSTOP)
                    return int(process.name)
        await asyncio.sleep(0.001)
    return 0
