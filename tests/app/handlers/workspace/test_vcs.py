"""What git says of a work tree: real repositories, and nothing of them is run."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codeloop.schema.api.files import VCS_DIFF, VCS_GET, VCS_STATUS, VcsDiffQuery, VcsFileDiff
from codeloop.schema.errors import CodeloopError
from codeloop.schema.operation import NoArguments
from codeloop.workspace.git.repository import Git, GitFailed
from codeloop.workspace.git.working_diff import list_changes
from tests.support.scripted_project import ScriptedProject, open_scripted_project, wait_for_result
from tests.workspace.snapshot.trees_on_disk import everything, git, repository, write

FILES = {"a.txt": "one\ntwo\nthree\n", "deep/b.txt": "b\n", "c.txt": "c\n"}


async def diffs(it: ScriptedProject, mode: Any = "git", **args: Any) -> dict[str, VcsFileDiff]:
    found = await it.client.call(VCS_DIFF, VcsDiffQuery(mode=mode, **args))
    return {each.file: each for each in found}


async def test_the_branch_and_the_default_branch_are_named(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "checkout", "-q", "-b", "feature/x")
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(VCS_GET, NoArguments())
        assert (found.branch, found.default_branch) == ("feature/x", "main")
        git(root, "checkout", "-q", "--detach")
        assert (await it.client.call(VCS_GET, NoArguments())).branch is None


async def test_a_remote_says_which_branch_is_the_default_one(tmp_path: Path) -> None:
    origin = repository(tmp_path / "origin", FILES)
    git(origin, "checkout", "-q", "-b", "trunk")
    git(tmp_path, "clone", "-q", str(origin), str(tmp_path / "work"))
    async with open_scripted_project(tmp_path, []) as it:
        assert (await it.client.call(VCS_GET, NoArguments())).default_branch == "trunk"


async def test_a_branch_without_commits_has_a_name_and_its_files_are_added(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q", "-b", "fresh")
    write(root, {"new.txt": "n\n", "staged.txt": "s\n"})
    git(root, "add", "staged.txt")
    async with open_scripted_project(tmp_path, []) as it:
        assert (await it.client.call(VCS_GET, NoArguments())).branch == "fresh"
        assert {
            each.file: each.status for each in await it.client.call(VCS_STATUS, NoArguments())
        } == {
            "new.txt": "added",
            "staged.txt": "added",
        }


async def test_outside_a_repository_there_is_nothing_to_say(tmp_path: Path) -> None:
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(VCS_GET, NoArguments())
        assert (found.branch, found.default_branch) == (None, None)
        assert await it.client.call(VCS_STATUS, NoArguments()) == []
        assert await it.client.call(VCS_DIFF, VcsDiffQuery(mode="git")) == []
        assert await it.client.call(VCS_DIFF, VcsDiffQuery(mode="branch")) == []


async def test_status_gives_each_changed_file_with_its_lines(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {**FILES, ".gitignore": "*.log\n"})
    write(root, {"a.txt": "one\nTWO\nthree\nfour\n", "new/file.txt": "x\ny", "noise.log": "no"})
    (root / "c.txt").unlink()
    git(root, "add", "a.txt")
    async with open_scripted_project(tmp_path, []) as it:
        found = await it.client.call(VCS_STATUS, NoArguments())
    assert [(each.file, each.status, each.additions, each.deletions) for each in found] == [
        ("a.txt", "modified", 2, 1),
        ("c.txt", "deleted", 0, 1),
        ("new/file.txt", "added", 2, 0),
    ]


async def test_patches_are_what_git_would_print_and_apply_to_the_last_commit(
    tmp_path: Path,
) -> None:
    root = repository(
        tmp_path / "work", {**FILES, "name with space": "x\n", "ünï.txt": "ü\n", 'q"\\\t': "1\n"}
    )
    write(
        root,
        {"a.txt": "one\nTWO\nthree", "name with space": "y\n", "ünï.txt": "u\n", 'q"\\\t': "2\n"},
    )
    write(root, {"new file": "1\n2\n", 'new"\n\t': "odd\n", "empty": "", "run.sh": "#!/bin/sh"})
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to(".//a.txt")
    (root / "c.txt").unlink()
    (root / "c.txt").symlink_to("a.txt")
    (root / "bin").write_bytes(b"\0\1")
    wanted = {
        name: content for name, content in everything(root).items() if not name.startswith(".git/")
    }
    async with open_scripted_project(tmp_path, []) as it:
        found = await diffs(it)
    assert set(found) == {
        *(
            "a.txt",
            "name with space",
            "ünï.txt",
            'q"\\\t',
            "new file",
            'new"\n\t',
            "empty",
            "run.sh",
            "link",
        ),
        *("c.txt", "bin"),
    }
    assert found["a.txt"].patch == (
        "diff --git a/a.txt b/a.txt\nindex 4cb29ea..a9beb14 100644\n--- a/a.txt\n+++ b/a.txt\n"
        "@@ -1,3 +1,3 @@\n one\n-two\n-three\n+TWO\n+three\n\\ No newline at end of file\n"
    )
    git(root, "add", "-A")
    names = ("bin", "link", "new file", 'new"\n\t')
    of_git = git(root, "-c", "core.quotePath=false", "diff", "--cached", "--no-renames", *names)
    assert "".join(found[name].patch or "" for name in names) == of_git
    binary = found.pop("bin")
    assert (binary.additions, binary.status) == (0, "added")
    again = repository(
        tmp_path / "again", {**FILES, "name with space": "x\n", "ünï.txt": "ü\n", 'q"\\\t': "1\n"}
    )
    subprocess.run(
        ["git", "apply"],
        cwd=again,
        input="".join(each.patch or "" for each in found.values()).encode(),
        check=True,
    )
    wanted.pop("bin")
    assert {n: c for n, c in everything(again).items() if not n.startswith(".git/")} == wanted


async def test_context_is_as_many_lines_as_asked_for(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "".join(f"{n}\n" for n in range(20))})
    write(root, {"a.txt": "".join(f"{n}\n" for n in range(20)).replace("10\n", "ten\n")})
    async with open_scripted_project(tmp_path, []) as it:
        for context in (0, 3, 12):
            patch = (await diffs(it, context=context))["a.txt"].patch or ""
            assert patch.count("\n ") == min(2 * context, 19)
        for wrong in (-1, 10**30):
            with pytest.raises(CodeloopError, match="context"):
                await diffs(it, context=wrong)


async def test_mode_branch_compares_with_where_the_branch_left_the_default_one(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "checkout", "-q", "-b", "topic")
    write(root, {"topic.txt": "t\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "topic")
    git(root, "checkout", "-q", "main")
    write(root, {"main.txt": "later\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "later")
    git(root, "checkout", "-q", "topic")
    write(root, {"open.txt": "o\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert set(await diffs(it, mode="branch")) == {"topic.txt", "open.txt"}
        assert set(await diffs(it)) == {"open.txt"}
        git(root, "branch", "-q", "-m", "main", "elsewhere")
        with pytest.raises(CodeloopError, match="no default branch"):
            await diffs(it, mode="branch")


async def test_a_file_taken_out_of_the_index_only_is_one_modified_file(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "rm", "-q", "--cached", "a.txt")
    async with open_scripted_project(tmp_path, []) as it:
        found = await diffs(it)
    assert [
        (each.file, each.status, each.additions, each.deletions) for each in found.values()
    ] == [("a.txt", "modified", 3, 3)]


async def test_a_touched_file_is_not_changed_and_the_repository_stays_as_it_was(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    os.utime(root / "a.txt", (1, 1))
    write(root, {"new.txt": "n"})
    before = everything(root / ".git")
    async with open_scripted_project(tmp_path, []) as it:
        assert set(await diffs(it)) == {"new.txt"}
        assert [each.file for each in await it.client.call(VCS_STATUS, NoArguments())] == [
            "new.txt"
        ]
    assert everything(root / ".git") == before


async def test_a_change_right_after_git_looked_is_seen(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "old\n"})
    info = (root / "a.txt").stat()
    (root / "a.txt").write_text("new\n")
    os.utime(root / "a.txt", ns=(info.st_atime_ns, info.st_mtime_ns))
    os.utime(root / ".git" / "index", ns=(info.st_mtime_ns, info.st_mtime_ns))
    async with open_scripted_project(tmp_path, []) as it:
        assert set(await diffs(it)) == {"a.txt"}


@pytest.mark.parametrize("config", ["local", "included"])
async def test_nothing_that_a_repository_configures_is_run(tmp_path: Path, config: str) -> None:
    root = repository(tmp_path / "work", FILES)
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    keys = (
        *(
            "core.fsmonitor",
            "core.sshCommand",
            "core.pager",
            "pager.diff",
            "core.editor",
            "diff.external",
        ),
        *(
            "diff.x.command",
            "diff.x.textconv",
            "filter.x.clean",
            "filter.x.smudge",
            "filter.x.process",
        ),
        *(
            "alias.diff",
            "alias.ls-files",
            "core.alternateRefsCommand",
            "credential.helper",
            "core.askPass",
        ),
    )
    file = tmp_path / "included.config" if config == "included" else root / ".git" / "config"
    for key in keys:
        git(
            root,
            "config",
            "--file",
            str(file),
            key,
            f"!{trap}" if key.startswith("alias") else str(trap),
        )
    git(root, "config", "--file", str(file), "filter.x.required", "true")
    git(root, "config", "--file", str(file), "core.hooksPath", str(tmp_path / "hooks"))
    git(root, "config", "--file", str(file), "extensions.partialClone", "origin")
    git(root, "config", "--file", str(file), "remote.origin.url", f"ext::{trap}")
    if config == "included":
        git(root, "config", "include.path", str(file))
    (tmp_path / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-commit"):
        (tmp_path / "hooks" / hook).symlink_to(trap)
    write(root, {".gitattributes": "* filter=x diff=x\n", "a.txt": "changed\n", "new.txt": "n\n"})
    (root / "embedded").mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(root / "embedded")], check=True)
    subprocess.run(
        ["git", "-C", str(root / "embedded"), "config", "core.fsmonitor", str(trap)], check=True
    )
    async with open_scripted_project(tmp_path, []) as it:
        found = await diffs(it)
        assert {"a.txt", "new.txt", ".gitattributes"} <= set(found)
        assert "+changed" in (found["a.txt"].patch or "")
        await diffs(it, mode="branch")
        await it.client.call(VCS_STATUS, NoArguments())
        assert (await it.client.call(VCS_GET, NoArguments())).branch == "main"
    assert not sprung.exists()
    subprocess.run(["git", "diff"], cwd=root, capture_output=True, check=False)
    assert sprung.exists(), "the traps are not armed"


async def test_a_submodule_is_one_row_and_its_own_configuration_is_not_run(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"lib.c": "int x;\n"})
    root = repository(tmp_path / "work", FILES)
    git(root, "submodule", "--quiet", "add", str(inner), "vendor/inner")
    git(root, "commit", "-q", "-m", "submodule")
    sprung = tmp_path / "sprung"
    git(root / "vendor/inner", "config", "core.fsmonitor", f"touch {sprung}; false")
    write(root, {"vendor/inner/lib.c": "int y;\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert await diffs(it) == {}
        git(root / "vendor/inner", "-c", "core.fsmonitor=false", "commit", "-q", "-a", "-m", "more")
        found = await diffs(it)
        assert [(each.file, each.status) for each in found.values()] == [
            ("vendor/inner", "modified")
        ]
    assert not sprung.exists()


async def test_a_second_work_tree_has_its_own_branch_and_changes(tmp_path: Path) -> None:
    root = repository(tmp_path / "first", FILES)
    git(root, "worktree", "add", "-q", "-b", "second", str(tmp_path / "work"))
    write(tmp_path / "work", {"a.txt": "here\n"})
    write(root, {"c.txt": "there\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert (await it.client.call(VCS_GET, NoArguments())).branch == "second"
        assert set(await diffs(it)) == {"a.txt"}


@pytest.mark.parametrize("kind", ["split", "sparse", "sha256", "version 4"])
async def test_unusual_indexes_are_read_too(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", *(["--object-format=sha256"] if kind == "sha256" else []))
    if kind == "sparse":
        write(root, FILES)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "all")
        git(root, "config", "index.sparse", "true")
        git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "nothing")
    else:
        repository(root, FILES)
    if kind == "split":
        git(root, "update-index", "--split-index")
    if kind == "version 4":
        git(root, "update-index", "--index-version", "4")
    write(root, {"a.txt": "one\n", "new.txt": "n\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert {name: each.status for name, each in (await diffs(it)).items()} == {
            "a.txt": "modified",
            "new.txt": "added",
        }


async def test_line_ends_that_git_converts_are_no_change(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "config", "core.autocrlf", "true")
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    async with open_scripted_project(tmp_path, []) as it:
        assert await diffs(it) == {}


async def test_a_directory_below_the_top_speaks_of_the_whole_work_tree(tmp_path: Path) -> None:
    root = repository(tmp_path, {"top.txt": "t\n", "work/in.txt": "i\n", ".gitignore": "home\n"})
    write(root, {"top.txt": "T\n", "work/in.txt": "I\n", "work/new.txt": "n\n"})
    async with open_scripted_project(tmp_path, []) as it:
        assert set(await diffs(it)) == {"top.txt", "work/in.txt", "work/new.txt"}


async def test_pipes_and_unreadable_bytes_do_not_stop_a_comparison(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    os.mkfifo(root / "pipe")
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    Path(os.fsdecode(os.fsencode(root) + b"/odd\xff")).write_text("x\n")
    async with open_scripted_project(tmp_path, []) as it:
        found = await diffs(it)
        assert set(found) == {"latin.txt", "odd\ufffd"}
        assert "+caf\ufffd" in (found["latin.txt"].patch or "")
        (root / "a.txt").unlink()
        os.mkfifo(root / "a.txt")
        with pytest.raises(CodeloopError, match=r"a\.txt"):
            await diffs(it)


async def test_what_is_too_much_is_left_out_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", FILES)
    write(
        root,
        {
            "a.txt": "long line\n" * 200,
            "b.txt": "b\n",
            "c.txt": "C\n",
            "d.txt": "long line\n" * 200,
        },
    )
    from codeloop.workspace.git import working_diff

    monkeypatch.setattr(working_diff, "VCS_PATCH", small("vcs.patch", 500))
    async with open_scripted_project(tmp_path, []) as it:
        found = await diffs(it)
        assert {name: each.patch is None for name, each in found.items()} == {
            **dict.fromkeys(("a.txt", "d.txt"), True),
            **dict.fromkeys(("b.txt", "c.txt"), False),
        }
        assert (found["a.txt"].additions, found["d.txt"].additions) == (200, 200)
        monkeypatch.setattr(working_diff, "VCS_FILES", small("vcs.files", 3))
        with pytest.raises(CodeloopError, match="More than 3 files"):
            await diffs(it)


async def test_large_files_count_as_binary_and_are_not_read(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"tracked.txt": "t\n"})
    (root / "tracked.txt").write_text("line\n" * 1_000_000)
    with (root / "sparse.img").open("wb") as file:
        file.truncate(100 * 1024**3)
    async with open_scripted_project(tmp_path, []) as it:
        found = await wait_for_result(diffs(it), 30)
    assert {name: (each.additions, each.status) for name, each in found.items()} == {
        "sparse.img": (0, "added"),
        "tracked.txt": (0, "modified"),
    }
    assert all((each.patch or "").endswith(" differ\n") for each in found.values())


def small(name: str, value: int) -> Any:
    from codeloop.schema.limits import Limit

    return Limit(name, value, "count", "for this test")


@pytest.mark.slow
async def test_a_git_that_hangs_is_stopped_and_one_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "work", FILES)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setattr(
        Git.run, "__kwdefaults__", {**(Git.run.__kwdefaults__ or {}), "seconds": 0.1}
    )
    async with open_scripted_project(tmp_path, []) as it:
        it.project.workspace.environment["PATH"] = f"{slow.parent}:/usr/bin:/bin"
        with pytest.raises(CodeloopError, match="stopped after"):
            await diffs(it)
        it.project.workspace.environment["PATH"] = str(tmp_path)
        with pytest.raises(CodeloopError, match="not found on the PATH"):
            await diffs(it)
        assert (await it.client.call(VCS_GET, NoArguments())).branch is None


async def test_more_changed_files_than_can_be_listed_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codeloop.workspace.git.working_diff._NAMES_BYTES", 300)
    root = repository(tmp_path / "work", {f"{number}.txt": "a\n" for number in range(9)})
    write(root, {f"{number}.txt": "b\n" for number in range(9)})
    with pytest.raises(GitFailed, match="differ"):
        await list_changes(Git(root, os.environ), git(root, "rev-parse", "HEAD").strip(), None)
