"""The git directory that work trees share: commands in one of them destroy nothing
in it that the others need.
"""

from pathlib import Path

import pytest

from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_other_work_trees import Trees, trees
from tests.workspace.sandbox.test_planted import git

__all__ = ["trees"]
pytestmark = pytest.mark.slow
ATTACKS = (
    "echo '*' >> {git}/info/exclude",
    "echo x > {git}/info/grafts; echo x > {git}/info/sparse-checkout",
    "mv {git}/info {git}/info2; mkdir {git}/info; echo '*' > {git}/info/exclude",
    "rm -rf {git}/info",
    "echo garbage > {git}/shallow; rm -f {git}/shallow",
    "echo '[core] fsmonitor = evil' >> {git}/config",
    "echo x > {git}/hooks/pre-commit; mv {git}/hooks {git}/hooks2",
    "echo 'ref: refs/heads/first' > {git}/HEAD; rm -f {git}/HEAD {git}/index",
    "echo garbage > {git}/index",
    "echo x > {git}/logs/HEAD; rm -rf {git}/logs",
    "rm -f {git}/logs/refs/heads/second; echo x > {git}/logs/refs/heads/second",
    "git reflog expire --expire=now second",
    "echo garbage > {git}/refs/heads/second; rm -rf {git}/refs/heads",
    "git update-ref -d refs/heads/second; git branch -D second; git branch -f second HEAD",
    "git reset --hard; git push -q . +HEAD:second",
    "echo garbage > {git}/MERGE_HEAD; rm -f {git}/MERGE_HEAD",
    "rm -rf {git}/worktrees/second; echo x > {git}/worktrees/second/index",
    "echo 'ref: refs/heads/first' > {git}/worktrees/second/HEAD; mv {git}/worktrees {git}/w",
    "git worktree prune --expire=now; git worktree remove --force {second}",
    "rm -f {git}/objects/pack/*",
    "chmod -R u+w {git}/objects/pack; for p in {git}/objects/pack/*.pack; do : > $p; echo x >> $p; done",
    "for p in {git}/objects/pack/*.idx; do mv {git}/objects/pack/a $p; truncate -s 0 $p; done",
    "mv {git}/objects/pack {git}/p; mv {git}/objects {git}/o; rm -rf {git}/objects",
    "echo garbage > {git}/modules/sub/HEAD; rm -rf {git}/modules/sub",
    "git --git-dir={git}/modules/sub update-ref -d refs/heads/kept",
    "mv {git}/modules {git}/m; echo '[core] fsmonitor = evil' >> {git}/modules/sub/config",
    "(cd {git}/modules/lib && rm -rf HEAD config hooks objects/pack packed-refs worktrees/second)",
    "git gc --prune=now --quiet; git repack -a -d -q; git prune --expire=now",
)
EVERYDAY = (
    "echo two > b.txt && git add -A && git commit -qm two",
    "git switch -qc topic && echo three > c.txt && git add -A && git commit -qm three",
    "git switch -q first && git merge -q --no-ff -m merged topic",
    "git branch -d topic",
    "git switch -qc later HEAD~1 && echo four > d.txt && git add -A && git commit -qm four && git rebase -q first",
    "git switch -q first && git merge -q later && git branch -qd later",
    "git cherry-pick --allow-empty side && git revert --no-edit HEAD",
    "echo five >> b.txt && git stash -q && git stash pop -q && git checkout -q b.txt && git stash list",
    "git tag new && git tag -d new && git tag -am noted noted",
    "git fetch -q {git} +refs/heads/*:refs/remotes/origin/*",
    "git fetch -q {git} side && git branch -f side FETCH_HEAD",
    "git bisect start HEAD HEAD~2 && git bisect reset",
    "git branch -D kept && git tag -d v1 && git fetch -q --prune {git} +refs/heads/*:refs/remotes/origin/*",
    "git gc --auto && git maintenance run --auto",
    "git pack-refs --all --prune",
    "echo six > lib/six && git -C lib add -A && git -C lib -c user.name=A -c user.email=a@example.com commit -qm six",
    "git -C lib switch -qc own && git -C lib tag new && git -C lib tag -d new",
    "git fsck --no-progress",
)


@pytest.fixture
def shared(it: Attacked, trees: Trees) -> Path:
    """The git directory of the three work trees, packed,
    with a merge that is under way and a submodule's directory.
    """
    main, shared = it.root, it.root / ".git"
    git(it, main, "switch", "-qc", "side")
    (main / "s.txt").write_text("side\n")
    git(it, main, "add", "-A")
    git(it, main, "commit", "-qm", "side")
    git(it, main, "switch", "-q", "-")
    git(it, main, "tag", "v1")
    git(it, main, "branch", "kept")
    git(it, main, "gc", "--quiet")
    (shared / "info/exclude").write_text("lib\n")
    (shared / "MERGE_HEAD").write_text(git(it, main, "rev-parse", "side"))
    git(it, main, "init", "-q", "--bare", str(shared / "modules/sub"))
    (shared / "modules/sub/refs/heads/kept").write_text(git(it, main, "rev-parse", "side"))
    lib = str(shared / "modules/lib")  # a submodule that is checked out in the first tree
    git(it, main, "clone", "-q", "--bare", str(main), lib)
    git(it, main, f"--git-dir={lib}", "worktree", "add", "-q", "--detach", str(trees.first / "lib"))
    return shared


def read_kept(shared: Path) -> dict[str, bytes]:
    """Return the contents of the files that belong to the other work trees or to all of them."""
    names = ("shallow", "config", "HEAD", "index", "MERGE_HEAD", "logs/HEAD")
    names = (*names, "logs/refs/heads/second")
    folders = ("info", "hooks", "worktrees/second", "objects/pack", "modules")
    files = [shared / name for name in names]
    files += [path for name in folders for path in (shared / name).rglob("*") if path.is_file()]
    return {str(path.relative_to(shared)): path.read_bytes() for path in files}


async def test_no_attack_in_one_tree_destroys_what_the_others_need(
    it: Attacked, trees: Trees, shared: Path
) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock knows no exceptions below a folder that may be written")
    (shared / "shallow").write_text(git(it, it.root, "rev-list", "--max-parents=0", "HEAD"))
    await trees.inside.run("true")
    before, wrong = read_kept(shared), list[str]()
    second = git(it, it.root, "rev-parse", "second")
    for attack in ATTACKS:
        await trees.inside.run(attack.format(git=shared, second=trees.second))
        now = {path: (shared / path).read_bytes() for path in before if (shared / path).is_file()}
        wrong += [f"{attack}: {path}" for path in before if now.get(path) != before[path]]
    assert wrong == []
    assert git(it, it.root, "rev-parse", "second") == second
    git(it, it.root, "fsck", "--no-progress")
    assert (
        git(it, it.root, "status", "--porcelain")
        == git(it, trees.second, "status", "--porcelain")
        == ""
    )


async def test_everyday_git_works_in_a_tree(it: Attacked, trees: Trees, shared: Path) -> None:
    for line in EVERYDAY:
        outcome = await trees.inside.run(line.format(git=shared))
        assert outcome.code == 0, (line, outcome.output, outcome.notes)
    assert not (shared / "gc.log").exists()
    assert git(it, it.root, "log", "--format=%s", "-1", "side").strip() == "side"


async def test_what_the_main_tree_packs_meanwhile_is_kept_from_the_next_command(
    it: Attacked, trees: Trees
) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock knows no exceptions below a folder that may be written")
    await trees.inside.run("true")
    git(it, it.root, "gc", "--quiet")
    third = it.home.parent / "third"
    git(it, it.root, "worktree", "add", "-q", "-b", "third", str(third))
    shared = it.root / ".git"
    await trees.inside.run(
        f"rm -f {shared}/objects/pack/*.pack; rm -rf {shared}/worktrees/third; git branch -D third"
    )
    git(it, third, "fsck", "--no-progress")
    assert git(it, third, "status", "--porcelain") == ""
