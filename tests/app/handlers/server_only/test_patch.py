"""The work tree's changes as a patch, and patches that are applied to it."""

from pathlib import Path

from tests.server.support.serving import served
from tests.workspace.snapshot.trees_on_disk import git, repository, write

NEW = "diff --git a/{0} b/{0}\nnew file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+hi\n"


async def test_the_patch_of_a_work_tree_makes_another_one_the_same(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n", "b.txt": "two\n"})
    write(root, {"a.txt": "ONE\n", "new.txt": "new\n"})
    (root / "b.txt").unlink()
    async with served(tmp_path) as it:
        response = await it.http.get("/vcs/diff/raw")
        assert response.headers["content-type"] == "text/x-diff; charset=utf-8"
        git(root, "checkout", "-q", ".")
        (root / "new.txt").unlink()
        assert await it.post("/vcs/apply", {"patch": response.text}) == {"applied": True}
        assert (root / "a.txt").read_text() == "ONE\n"
        assert sorted(path.name for path in root.iterdir()) == [".git", "a.txt", "new.txt"]
        refused = await it.post("/vcs/apply", {"patch": response.text}, 400)
        assert (refused["name"], refused["data"]["reason"]) == ("VcsApplyError", "not-clean")


async def test_a_patch_changes_nothing_outside_and_nothing_of_git(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "one\n"})
    (root / "link").symlink_to(tmp_path)
    async with served(tmp_path) as it:
        for name in ("../out", ".git/hooks/post-commit", "link/out", str(tmp_path / "out")):
            refused = await it.post(
                "/vcs/apply", {"patch": NEW.format("fine.txt") + NEW.format(name)}, 400
            )
            assert refused["data"]["reason"] == "not-clean"
    assert not (tmp_path / "out").exists()
    assert not (root / ".git" / "hooks" / "post-commit").exists()
    assert not (root / "fine.txt").exists()


async def test_outside_a_repository_nothing_is_applied(tmp_path: Path) -> None:
    async with served(tmp_path) as it:
        assert (await it.http.get("/vcs/diff/raw")).text == ""
        assert (await it.post("/vcs/apply", {"patch": NEW.format("a")}, 400))["data"][
            "reason"
        ] == "non-git"
