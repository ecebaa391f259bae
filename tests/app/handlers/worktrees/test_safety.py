"""Work trees that lose nothing: the base they come from, what goes along, what is merged,
what is removed.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codeloop.client.local import LocalClient
from codeloop.client.worktrees import open_named_worktree, run_worktree_command
from codeloop.config.paths import find_paths
from codeloop.config.trust.store import find_trust_record, trust_directory
from codeloop.schema.bounds.session import SLOW_CHECKOUT_TIME
from codeloop.schema.errors import UsageProblem
from codeloop.schema.wire import replace
from tests.app.handlers.worktrees.test_create import PATH, remove
from tests.server.support.serving import Served, served
from tests.support.sandbox_support import has_sandbox
from tests.support.scripted_project import make_startup
from tests.workspace.snapshot.trees_on_disk import ENVIRONMENT, git, repository, write

FILES = {"a.txt": "1\n2\n3\n", "b.txt": "b\n", ".gitignore": ".env\nlocal/\nother.env\n"}


@pytest.fixture(autouse=True)
def no_slow_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no checkout count as slow, which would be a note of its own."""
    limit = replace(SLOW_CHECKOUT_TIME, value=600_000)
    monkeypatch.setattr("codeloop.app.handlers.worktrees.create.SLOW_CHECKOUT_TIME", limit)


async def make(it: Served, **body: Any) -> tuple[Path, Any]:
    made = await it.post(PATH, body)
    return Path(made["directory"]), made


async def look(it: Served, name: str) -> Any:
    return next(row for row in await it.get("/worktree") if row["name"] == name)


def commit(folder: Path, files: dict[str, str], message: str = "more") -> str:
    write(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.mark.slow
async def test_it_begins_where_one_is_and_is_compared_with_that(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    git(root, "checkout", "-q", "-b", "topic")
    tip = commit(root, {"topic.txt": "t\n"})
    async with served(tmp_path) as it:
        folder, made = await make(it, name="one")
        assert (made["base"], git(folder, "rev-parse", "HEAD").strip()) == ("topic", tip)
        commit(root, {"later.txt": "l\n"})
        commit(folder, {"mine.txt": "m\n"})
        write(folder, {"new.txt": "n\n"})
        diff = await it.get("/worktree/one/diff")
        assert [each["file"] for each in diff["files"]] == ["mine.txt", "new.txt"]
        row = await look(it, "one")
        assert (row["ahead"], row["behind"], row["unmerged"], row["changed"]) == (
            1,
            1,
            1,
            ["new.txt"],
        )
        _, other = await make(it, name="two", base="main")
        assert other["base"] == "main"
        assert not (Path(other["directory"]) / "topic.txt").exists()
        git(root, "checkout", "-q", "--detach", tip)
        third, detached = await make(it, name="three")
        assert (detached["base"], git(third, "rev-parse", "HEAD").strip()) == (tip, tip)
        refused = await it.post("/worktree/three/merge", {}, 400)
        assert "Name the branch to merge into" in refused["data"]["message"]
        lines = await run_worktree_command(
            LocalClient(await it.project()), "merge three --into main"
        )
        assert lines == [f"main holds it: {tip[:12]}"]
        refused = await it.post(PATH, {"base": "nowhere"}, 400)
        assert "no branch or commit nowhere" in refused["data"]["message"]
        assert len(await it.get("/worktree")) == 3


@pytest.mark.slow
async def test_it_begins_at_the_linked_tree_that_one_is_in(tmp_path: Path) -> None:
    root = repository(tmp_path / "main", FILES)
    git(root, "worktree", "add", "-q", "-b", "linked", str(tmp_path / "work"))
    tip = commit(tmp_path / "work", {"linked.txt": "l\n"})
    async with served(tmp_path) as it:
        folder, made = await make(it, name="below")
        assert (made["base"], git(folder, "rev-parse", "HEAD").strip()) == ("linked", tip)
        write(folder, {"new.txt": "n\n"})
        merged = await it.post("/worktree/below/merge", {"message": "Mine"})
        assert (merged["into"], merged["committed"]) == ("linked", ["new.txt"])
        assert (tmp_path / "work" / "new.txt").read_text() == "n\n"
        assert git(root, "status", "--porcelain") == ""
        assert await remove(it, folder) is True


@pytest.mark.slow
async def test_conflicts_are_shown_and_change_nothing(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        tip = commit(root, {"a.txt": "1\nours\n3\n"})
        tip_of_tree = commit(folder, {"a.txt": "1\ntheirs\n3\n", "c.txt": "c\n"})[:7]
        for verb in ("merge", "rebase"):
            result = await it.post(f"/worktree/one/{verb}", {})
            assert "commit" not in result
            assert [each["file"] for each in result["conflicts"]] == ["a.txt"]
            ours, theirs = ("main", "codeloop/one") if verb == "merge" else ("HEAD", tip_of_tree)
            text = result["conflicts"][0]["text"]
            assert f"<<<<<<< {ours}\n" in text
            assert f">>>>>>> {theirs}" in text
            assert git(root, "rev-parse", "HEAD").strip() == tip
            assert git(root, "status", "--porcelain") == git(folder, "status", "--porcelain") == ""
        part = await it.post("/worktree/one/merge", {"files": ["c.txt"]})
        assert git(root, "rev-parse", "main").strip() == part["commit"]
        assert ((root / "c.txt").read_text(), (root / "a.txt").read_text()) == (
            "c\n",
            "1\nours\n3\n",
        )
        write(root, {"b.txt": "in the way\n"})
        commit(folder, {"b.txt": "b2\n", "a.txt": "1\nours\n3\n"})
        refused = await it.post("/worktree/one/merge", {}, 400)
        assert "b.txt" in refused["data"]["message"]
        assert (root / "b.txt").read_text() == "in the way\n"
        git(root, "checkout", "-q", "b.txt")
        assert "commit" in await it.post("/worktree/one/merge", {})
        assert (root / "b.txt").read_text() == "b2\n"
        assert await remove(it, folder) is True
        assert "one" not in git(root, "branch", "--list")


async def test_a_conflict_that_is_under_way_in_the_tree_is_never_committed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        commit(root, {"a.txt": "1\nours\n3\n"})
        tip = commit(folder, {"a.txt": "1\ntheirs\n3\n"})
        for verb, why in (("merge", "a.txt in"), ("rebase", "No branch is checked out")):
            with pytest.raises(subprocess.CalledProcessError):
                git(folder, verb, "main")
            refused = await it.post("/worktree/one/merge", {}, 400)
            assert why in refused["data"]["message"]
            assert git(folder, "diff", "--name-only", "--diff-filter=U") == "a.txt\n"
            git(folder, verb, "--abort")
        assert git(folder, "rev-parse", "HEAD").strip() == tip


async def test_the_branch_that_is_checked_out_in_the_tree_is_merged(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        git(folder, "switch", "-q", "-c", "topic")
        commit(folder, {"mine.txt": "m\n"})
        merged = await it.post("/worktree/one/merge", {})
        assert (merged["into"], (root / "mine.txt").read_text()) == ("main", "m\n")


async def test_a_tree_whose_record_is_lost_is_merged_into_the_branch_that_is_named(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        commit(folder, {"mine.txt": "m\n"})
        folder.with_name("one.json").unlink()
        refused = await it.post("/worktree/one/merge", {}, 400)
        assert "Name the branch to merge into" in refused["data"]["message"]
        merged = await it.post("/worktree/one/merge", {"into": "main"})
        assert (merged["into"], (root / "mine.txt").read_text()) == ("main", "m\n")


async def test_a_merge_into_a_branch_that_is_nowhere_checked_out(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        git(root, "checkout", "-q", "-b", "away")
        tip = commit(folder, {"c.txt": "c\n"})
        assert (await it.post("/worktree/one/merge", {}))["commit"] == tip
        assert git(root, "rev-parse", "main").strip() == tip
        assert not (root / "c.txt").exists()


@pytest.mark.slow
async def test_removal_by_force_keeps_what_was_uncommitted_on_the_branch(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        write(folder, {"a.txt": "changed\n", "new.txt": "new\n"})
        assert (await remove(it, folder))["name"] == "WorktreeRemoveFailedError"
        git(folder, "init", "-q", "clone")
        commit(folder / "clone", {"x": "x\n"})
        assert "clone" in (await remove(it, folder, force=True))["data"]["message"]
        shutil.rmtree(folder / "clone")
        assert await remove(it, folder, force=True) is True
        assert git(root, "show", "codeloop/one:new.txt") == "new\n"
        assert git(root, "show", "codeloop/one:a.txt") == "changed\n"
        assert await it.get("/worktree") == []
        again, made = await make(it, name="one")
        assert made["name"] != "one", "its branch is still there"
        assert await remove(it, again) is True


async def test_a_list_with_a_name_is_a_mistake_and_removes_nothing(tmp_path: Path) -> None:
    repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        client = LocalClient(await it.project())
        with pytest.raises(UsageProblem, match="Usage: /worktree"):
            await run_worktree_command(client, "list one")
        assert folder.is_dir()
        assert await run_worktree_command(client, "remove one") == ["Removed one."]
        assert not folder.exists()


@pytest.mark.slow
async def test_verbs_of_a_conversation_take_what_those_of_the_command_take(tmp_path: Path) -> None:
    repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        client = LocalClient(await it.project())
        tree, is_new, prompt = await open_named_worktree(
            client, "create one --base main fix the user's  name"
        )
        assert (tree.name, tree.base, is_new, prompt) == (
            "one",
            "main",
            True,
            "fix the user's  name",
        )
        again, is_new, prompt = await open_named_worktree(client, "one go on")
        assert (again.directory, is_new, prompt) == (tree.directory, False, "go on")
        two, *_ = await open_named_worktree(client, "create --sparse=sub two")
        await open_named_worktree(client, "create")
        for wrong in ("create three --bse main", "remov one", "lst", "creat three fix it"):
            with pytest.raises(UsageProblem, match="/worktree"):
                await open_named_worktree(client, wrong)
        write(Path(tree.directory), {"new.txt": "n\n", "other.txt": "o\n"})
        assert await run_worktree_command(client, "diff one --stat") == [
            "added     +1 -0  new.txt",
            "added     +1 -0  other.txt",
        ]
        lines = await run_worktree_command(client, "remove one")
        assert lines[-1].endswith("remove it: /worktree remove one --force")
        for wrong in (
            "remove",
            "remove one --clean",
            "diff",
            "diff one two",
            "diff one --into main",
            "merge one --into",
            "copy one",
            "merge 'one",
        ):
            with pytest.raises(UsageProblem, match="/worktree"):
                await run_worktree_command(client, wrong)
        merged = await run_worktree_command(
            client, "merge one --into=main -m 'All of it' --file new.txt"
        )
        assert merged[-1].startswith("main holds it: ")
        assert "All of it" in git(tmp_path / "work", "log", "--format=%s", "-3", "main")
        assert "other.txt" not in git(tmp_path / "work", "ls-files")
        assert "Removed two." in await run_worktree_command(client, "remove --clean")
        assert not Path(two.directory).exists()
        assert Path(tree.directory).exists()
        assert await run_worktree_command(client, "remove one --force") != []
        assert await run_worktree_command(client, "list") == [
            "No work trees. `codeloop --worktree NAME` makes one."
        ]


async def test_ignored_files_go_along_by_rule(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", FILES)
    write(root, {".env": "KEY=1\n", "local/settings.json": "{}\n", "other.env": "x\n"})
    rules = {"copy": {"local": "allow", "other.env": "deny"}}
    async with served(tmp_path, worktree=rules) as it:
        folder, made = await make(it, name="one")
        assert made["asks"] == [".env"]
        assert (folder / "local" / "settings.json").read_text() == "{}\n"
        assert not (folder / ".env").exists()
        assert await it.post("/worktree/one/copy", {"files": [".env"]}) == [".env"]
        assert (folder / ".env").read_text() == "KEY=1\n"
        for name in ("other.env", "../../x", "a.txt"):
            refused = await it.post("/worktree/one/copy", {"files": [name]}, 400)
            assert "is not an ignored file" in refused["data"]["message"]
        assert git(folder, "status", "--porcelain") == ""


@pytest.mark.slow
async def test_set_up_commands_run_only_in_what_was_trusted(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {**FILES, "opencode.json": '{"model": "a/b"}\n'})
    git(root, "checkout", "-q", "-b", "strange")
    commit(root, {"opencode.json": '{"mcp": {"x": {"type": "local", "command": ["evil"]}}}\n'})
    git(root, "checkout", "-q", "main")
    paths = find_paths(make_startup(tmp_path / "home", root).environment)
    async with served(tmp_path, worktree={"setup": ["touch ready"]}) as it:
        folder, made = await make(it, name="one")
        assert not (folder / "ready").exists()
        assert "not trusted" in made["notes"][0]
    trust_directory(paths, root)
    async with served(tmp_path, worktree={"setup": ["touch ready"]}) as it:
        folder, made = await make(it, name="two")
        assert (folder / "ready").exists()
        assert find_trust_record(paths, folder) is not None
        other, made = await make(it, name="three", base="strange")
        assert not (other / "ready").exists()
        assert find_trust_record(paths, other) is None
        (folder / "ready").unlink()
        assert await remove(it, folder) is True
        assert find_trust_record(paths, folder) is None


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no sandbox can be had here")
async def test_set_up_commands_run_in_the_sandbox_of_the_new_work_tree(tmp_path: Path) -> None:
    marks = tmp_path / "mark", tmp_path / "work/mark"
    lines = [f"touch {mark}" for mark in marks]
    root = repository(
        tmp_path / "work", {**FILES, "prepare.sh": "\n".join(["touch ready", *lines, "true\n"])}
    )
    trust_directory(find_paths(make_startup(tmp_path / "home", root).environment), root)
    async with served(tmp_path, worktree={"setup": ["sh prepare.sh"]}) as it:
        folder, _ = await make(
            it, name="one", startCommand="; ".join(["touch given", *lines, "true"])
        )
        assert ((folder / "ready").exists(), (folder / "given").exists()) == (True, True)
    assert [mark.exists() for mark in marks] == [False, False]


@pytest.mark.slow
async def test_submodules_are_filled_from_this_machine_and_not_lost(tmp_path: Path) -> None:
    library = repository(tmp_path / "library", {"l.txt": "l\n"})
    root = repository(tmp_path / "work", FILES)
    git(root, "submodule", "--quiet", "add", str(library), "vendor/lib")
    git(root, "commit", "-q", "-m", "with a submodule")
    library.rename(tmp_path / "gone")
    async with served(tmp_path) as it:
        folder, made = await make(it, name="one")
        assert (made.get("notes", []), (folder / "vendor/lib/l.txt").read_text()) == ([], "l\n")
        assert git(folder, "status", "--porcelain") == ""
        write(folder / "vendor/lib", {"l.txt": "changed\n"})
        assert (await look(it, "one"))["changed"] == ["vendor/lib"]
        assert "vendor/lib" in (await remove(it, folder))["data"]["message"]
        tip = commit(folder / "vendor/lib", {"l.txt": "changed\n"})
        assert "vendor/lib" in (await remove(it, folder))["data"]["message"]
        git(folder / "vendor/lib", "branch", "mine", tip)
        git(folder, "checkout", "-q", "--", ".")
        git(folder / "vendor/lib", "checkout", "-q", "--detach", "HEAD~1")
        assert await remove(it, folder) is True
        assert git(root / "vendor/lib", "cat-file", "-t", tip).strip() == "commit"
        assert git(root / "vendor/lib", "worktree", "list").count("\n") == 1


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_large_files_stay_pointers_unless_the_project_is_trusted(
    tmp_path: Path, *, is_trusted: bool
) -> None:
    if shutil.which("git-lfs") is None:
        pytest.skip("git-lfs is not installed")
    root = tmp_path / "work"
    root.mkdir()
    home = tmp_path / "lfs-home"
    home.mkdir()
    environment = {**ENVIRONMENT, "HOME": str(home)}

    def run(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root, env=environment, check=True, capture_output=True)

    run("init", "-q", "-b", "main")
    for name, words in (
        ("clean", "clean -- %f"),
        ("smudge", "smudge -- %f"),
        ("process", "filter-process"),
    ):
        run("config", f"filter.lfs.{name}", f"{shutil.which('git-lfs')} {words}")
    run("config", "filter.lfs.required", "true")
    write(
        root,
        {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "x.bin": "large\n" * 99},
    )
    run("add", "-A")
    run("commit", "-q", "-m", "first")
    if is_trusted:
        trust_directory(find_paths(make_startup(tmp_path / "home", root).environment), root)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        text = (folder / "x.bin").read_text()
        assert text.startswith(
            "large\n" if is_trusted else "version https://git-lfs.github.com/spec/v1"
        )
        assert (await look(it, "one")).get("changed", []) == []
        (folder / "x.bin").write_text("other\n" * 99)
        if is_trusted:
            await it.post("/worktree/one/merge", {})
            assert (root / "x.bin").read_text() == "other\n" * 99
            assert "git-lfs" in git(root, "show", "HEAD:x.bin"), "a pointer is what is stored"
        else:
            assert (
                "by a filter" in (await it.post("/worktree/one/merge", {}, 400))["data"]["message"]
            )
            (folder / "x.bin").write_text(text)
        assert await remove(it, folder) is True


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [False, True])
async def test_what_a_reset_writes_is_filtered_in_a_trusted_project(
    tmp_path: Path, *, is_trusted: bool
) -> None:
    root = repository(
        tmp_path / "work", {".gitattributes": "*.bin filter=upper\n", "x.bin": "first\n"}
    )
    (tmp_path / "home").mkdir(exist_ok=True)
    for name, words in (("smudge", "tr a-z A-Z"), ("clean", "tr A-Z a-z"), ("required", "true")):
        git(
            root,
            "config",
            "--file",
            str(tmp_path / "home/.gitconfig"),
            f"filter.upper.{name}",
            words,
        )
    git(root, "config", "filter.upper.smudge", "rev")  # the repository's own counts for nothing
    if is_trusted:
        trust_directory(find_paths(make_startup(tmp_path / "home", root).environment), root)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        assert (folder / "x.bin").read_text() == ("FIRST\n" if is_trusted else "first\n")
        tip = commit(root, {"x.bin": "second\n"})
        assert await it.post(f"{PATH}/reset", {"directory": str(folder)}) is True
        assert git(folder, "rev-parse", "HEAD").strip() == tip
        assert (folder / "x.bin").read_text() == ("SECOND\n" if is_trusted else "second\n")
        assert (await look(it, "one")).get("changed", []) == []
        assert await remove(it, folder) is True


@pytest.mark.slow
async def test_a_pointer_stays_a_pointer_without_the_program(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    root = repository(
        tmp_path / "work", {".gitattributes": "*.bin filter=lfs -text\n", "x.bin": pointer}
    )
    (tmp_path / "home").mkdir()
    for name, value in (("process", "no-such-git-lfs filter-process"), ("required", "true")):
        git(
            root, "config", "--file", str(tmp_path / "home/.gitconfig"), f"filter.lfs.{name}", value
        )
    trust_directory(find_paths(make_startup(tmp_path / "home", root).environment), root)
    async with served(tmp_path) as it:
        folder, made = await make(it, name="one")
        assert (folder / "x.bin").read_text() == pointer
        assert "without filters" in made["notes"][0]
        write(root, {"x.bin": pointer.replace("size 9", "size 10")})
        git(root, "commit", "-q", "-a", "-m", "more")
        assert await it.post(f"{PATH}/reset", {"directory": str(folder)}) is True
        assert "size 10" in (folder / "x.bin").read_text()
        assert await remove(it, folder) is True


@pytest.mark.slow
async def test_a_filter_that_only_the_repository_names_is_told_and_nothing_is_committed_without_it(
    tmp_path: Path,
) -> None:
    root = repository(
        tmp_path / "work",
        {".gitattributes": "*.key filter=crypt diff=crypt\n", "x.key": "sealed\n"},
    )
    for name in ("smudge", "clean"):
        git(root, "config", f"filter.crypt.{name}", f"touch {tmp_path / 'ran'}; cat")
    trust_directory(find_paths(make_startup(tmp_path / "home", root).environment), root)
    async with served(tmp_path) as it:
        folder, made = await make(it, name="one")
        assert "without filters (crypt)" in made["notes"][0]
        write(folder, {"x.key": "secret\n"})
        assert (
            "filter.crypt.clean"
            in (await it.post("/worktree/one/merge", {}, 400))["data"]["message"]
        )
    assert not (tmp_path / "ran").exists()
    assert git(folder, "log", "--format=%s") == "first\n"


@pytest.mark.slow
async def test_sparse_trees_hold_only_the_folders_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(tmp_path / "work", {"top.txt": "t\n", "one/a": "a\n", "two/b": "b\n"})
    monkeypatch.setattr(
        "codeloop.app.handlers.worktrees.create.SLOW_CHECKOUT_TIME",
        replace(SLOW_CHECKOUT_TIME, value=0),
    )
    async with served(tmp_path) as it:
        _, whole = await make(it, name="whole")
        assert "--sparse DIR" in whole["notes"][0]
        folder, made = await make(it, name="one", sparse=["one"])
        assert not made.get("notes")
        assert sorted(each.name for each in folder.iterdir()) == [".git", "one", "top.txt"]
        assert git(folder, "status", "--porcelain") == ""
        write(folder, {"one/a": "changed\n"})
        await it.post("/worktree/one/merge", {})
        assert (tmp_path / "work/one/a").read_text() == "changed\n"
        assert (tmp_path / "work/two/b").read_text() == "b\n"
        assert await remove(it, folder) is True


@pytest.mark.slow
async def test_trees_of_another_clone_are_left_alone(tmp_path: Path) -> None:
    repository(tmp_path / "work", FILES)
    async with served(tmp_path) as it:
        folder, _ = await make(it, name="one")
        git(tmp_path, "clone", "-q", str(tmp_path / "work"), str(tmp_path / "clone"))
        answer = await it.http.get(
            "/worktree", headers={"x-opencode-directory": str(tmp_path / "clone")}
        )
        assert answer.json() == []
        assert [row["name"] for row in await it.get("/worktree")] == ["one"]
        assert os.path.realpath(folder) == str(folder)
