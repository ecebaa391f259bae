"""What a tracked file that a rule hides holds, and held in earlier commits, no program in the
sandbox reads from git; and no command loses it there.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.workspace.git.private.private_git_folder import PrivateGitFolder
from codeloop.workspace.process.shells import CommandResult, ShellCommand, Shells
from codeloop.workspace.sandbox.policy import SandboxGrants
from codeloop.workspace.sandbox.sandboxes import Sandboxes
from tests.workspace.sandbox.conftest import Attacked
from tests.workspace.sandbox.test_git_folders import git

pytestmark = pytest.mark.slow
SECRETS = ("first-content", "second-content", "side-content", "staged-content", "third-content")
INFLATE = """
import os, re, subprocess, zlib
for top in (".git", ".git/real/objects"):
    for folder, _, names in os.walk(top):
        for name in names:
            data = open(os.path.join(folder, name), "rb").read()
            print(data)
            for start in [0, *(match.start() for match in re.finditer(b"x[\\x01\\x5e\\x9c\\xda]", data))]:
                try:
                    print(zlib.decompressobj().decompress(data[start:]))
                except zlib.error:
                    pass
print(subprocess.run(["git", "show", "HEAD:secret.txt"], capture_output=True))
"""
READS = (
    "git show HEAD:secret.txt; git cat-file -p HEAD~1:secret.txt; git show side:keys/deep/a",
    "git log -p --all --full-history -m; git log -p -g; git stash show -p; git diff HEAD~1",
    "git cat-file --batch-all-objects --batch",
    "git archive HEAD | tar xO; git archive side | tar xO",
    "git worktree add -q ../tmp-tree side 2>&1; git worktree add -q sub side; cat sub/secret.txt sub/keys/deep/a",
    "git clone -q .git /tmp/clone; cat /tmp/clone/secret.txt; git -C /tmp/clone log -p --all",
    "git checkout-index --prefix=out/ -a; cat out/secret.txt; git blame secret.txt; git grep content side",
    "git bundle create /tmp/b --all; git clone -q /tmp/b /tmp/c; git -C /tmp/c log -p --all",
    "git fast-export --all; git format-patch --stdout --root HEAD",
    "git repack -adq; git cat-file --batch-all-objects --batch",
    f'"{sys.executable}" inflate.py',
    "cat .git/real/objects/info/* .git/objects/info/* .git/real/objects/??/*; cat-file blob :secret.txt",
)  # fmt: skip


async def run(it: Attacked, text: str, *hidden: str) -> CommandResult:
    """Run a line with some files hidden."""
    grants = SandboxGrants(unreadable=tuple(it.root / name for name in hidden))
    policy = it.shells.make_policy(it.place, SandboxConfig(network="off"), grants)
    return await it.shells.run(it.context, ShellCommand(text, 120, None, policy), lambda _: None)


def write(root: Path, name: str, text: str) -> None:
    """Write a file, with its folders."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text + "\n")


@pytest.fixture
async def repo(it: Attacked) -> Attacked:
    """A repository whose history has contents of hidden files, in branches, stash and index."""
    if it.backend == "landlock":
        pytest.skip("Landlock mounts nothing")
    root = it.root
    write(root, "inflate.py", INFLATE)
    write(root, "a.txt", "open")
    write(root, "same.txt", "shared-content")
    write(root, "empty.txt", "")
    write(root, "secret.txt", SECRETS[0])
    git(root, "add", ".")
    git(root, "commit", "-qm", "1")
    git(root, "checkout", "-qb", "side")
    write(root, "secret.txt", SECRETS[2])
    write(root, "keys/deep/a", SECRETS[2])
    git(root, "add", ".")
    git(root, "commit", "-qm", "side")
    git(root, "checkout", "-q", "master")
    write(root, "secret.txt", SECRETS[1])
    write(root, "keys/deep/a", "shared-content")
    git(root, "add", ".")
    git(root, "commit", "-qm", "2")
    write(root, "secret.txt", SECRETS[3])
    git(root, "stash", "-q")
    return it


@pytest.mark.parametrize("form", ["loose", "packed"])
async def test_no_program_reads_the_content_of_a_hidden_file_from_git(
    repo: Attacked, form: str
) -> None:
    if form == "packed":
        git(repo.root, "repack", "-adq")
        git(repo.root, "pack-refs", "--all")
    for line in READS:
        result = await run(repo, line, "secret.txt", "keys")
        assert not any(secret in result.output for secret in SECRETS), (line, result.output)
    result = await run(
        repo, "git show HEAD:same.txt HEAD:a.txt HEAD:empty.txt", "secret.txt", "keys"
    )
    assert result.output.split() == ["shared-content", "open"], "what others hold stays readable"
    shown = await run(repo, "git show HEAD:secret.txt")
    assert SECRETS[1] in shown.output, "without the rule all is there"


async def test_what_the_user_commits_meanwhile_is_kept_from_commands_too(repo: Attacked) -> None:
    assert (await run(repo, "git log --oneline", "secret.txt")).code == 0
    for number in range(25):
        write(repo.root, "secret.txt", f"{SECRETS[4]} {number}")
        write(repo.root, "a.txt", f"open {number}")
        git(repo.root, "commit", "-qam", f"user {number}")
        result = await run(
            repo, "git show HEAD:a.txt; git show HEAD:secret.txt; git fsck", "secret.txt"
        )
        assert f"open {number}" in result.output
        assert SECRETS[4] not in result.output
        assert "missing tree" not in result.output
        assert "missing commit" not in result.output
    git(repo.root, "gc", "-q", "--prune=now")
    result = await run(repo, "git log -p", "secret.txt")
    assert "open 24" in result.output
    assert SECRETS[4] not in result.output


LOSING = (
    "echo 1 >> a.txt; git commit -qam x",
    "echo 2 >> a.txt; git add -A; git commit -qm x",
    "echo 3 >> a.txt; git add -u; git commit -qm x --amend",
    "echo 4 >> a.txt; git stash -q; git stash pop -q; git commit -qam x",
    "git checkout -qb other; git reset -q --hard HEAD; git checkout -q master",
    "git add secret.txt; git add -f secret.txt; git commit -qm x --allow-empty",
    "git rm -q --cached a.txt; git commit -qm x; git add a.txt; git commit -qm y",
    "git rebase -q --force-rebase HEAD~2; git cherry-pick --allow-empty HEAD",
)


@pytest.mark.parametrize("form", ["", "--index-version 4", "--split-index", "--untracked-cache"])
async def test_no_command_commits_a_hidden_file_as_empty(repo: Attacked, form: str) -> None:
    root = repo.root
    git(root, "update-index", *form.split())
    write(root, "secret.txt", SECRETS[1])
    for line in LOSING:
        result = await run(repo, line, "secret.txt")
        assert git(root, "show", "HEAD:secret.txt") == SECRETS[1], (line, result.output)
        assert git(root, "status", "--porcelain", "--untracked-files=no") == "", line
        assert not git(root, "ls-files", "-v").count("\nS "), line
        assert not any("hidden from git status" in text for text in result.warnings), line
    assert "S secret.txt" in (await run(repo, "git ls-files -v", "secret.txt")).output
    assert (await run(repo, "git status --porcelain -uno", "secret.txt")).output == ""
    # A user's own mark stays.
    git(root, "update-index", "--skip-worktree", "secret.txt")
    await run(repo, "echo 9 >> a.txt; git commit -qam z", "secret.txt")
    assert "S secret.txt" in git(root, "ls-files", "-v")


async def test_no_merge_makes_a_hidden_content_of_what_commands_see(repo: Attacked) -> None:
    write(repo.root, "b.txt", "of the user")
    git(repo.root, "checkout", "-qb", "plain", "HEAD~1")
    git(repo.root, "add", "b.txt")
    git(repo.root, "commit", "-qm", "plain")
    git(repo.root, "checkout", "-q", "master")
    for line in (
        "merge side",
        "cherry-pick side",
        "rebase side",
        "stash pop",
        "revert --no-edit HEAD",
    ):
        result = await run(
            repo, f"git {line}; git status; git {line.split()[0]} --abort", "secret.txt", "keys"
        )
        assert git(repo.root, "show", "HEAD:secret.txt") == SECRETS[1], (line, result.output)
        assert git(repo.root, "log", "--format=%s", "-1") == "2", (line, result.output)
    merged = await run(repo, "git merge -q --no-edit plain", "secret.txt", "keys")
    assert merged.code == 0, merged.output
    assert git(repo.root, "show", "HEAD:b.txt") == "of the user"
    assert git(repo.root, "show", "HEAD:secret.txt") == SECRETS[1]


@pytest.mark.parametrize("form", ["", "--index-version 4", "--split-index"])
async def test_a_conflict_in_a_hidden_file_stops_no_command(repo: Attacked, form: str) -> None:
    root = repo.root
    git(root, "update-index", *form.split())
    git(root, "merge", "-q", "side", code=1)
    assert git(root, "ls-files", "-u").count("secret.txt") == 3
    for line in ("git status", "echo 1 > new.txt; git add new.txt", "git merge --abort; true"):
        result = await run(repo, line, "secret.txt")
        assert result.code == 0, (line, result)
        assert not any("can't be marked" in text for text in result.warnings), result
    assert (await run(repo, "git log --format=%s -1", "secret.txt")).output == "2\n"


async def test_a_command_makes_and_ends_a_conflict_in_a_hidden_file(repo: Attacked) -> None:
    contents = git(repo.root, "rev-parse", "HEAD~1:secret.txt", "side:secret.txt").split()
    rows = "".join(
        f"100644 {content} {stage}\\tsecret.txt\\n"
        for stage, content in zip("123", (contents[0], *contents), strict=True)
    )
    line = f"printf '0 {'0' * 40}\\tsecret.txt\\n{rows}' | git update-index --index-info"
    assert (await run(repo, line, "secret.txt")).code == 0
    assert git(repo.root, "ls-files", "-u").count("secret.txt") == 3
    result = await run(repo, "git ls-files -u; echo 1 > new.txt; git add new.txt", "secret.txt")
    assert (result.code, result.output.count("secret.txt")) == (0, 3), result
    assert (await run(repo, "git reset -q", "secret.txt")).code == 0
    result = await run(repo, "git status --porcelain -uno", "secret.txt")
    assert (result.code, result.output) == (0, ""), result
    assert "\nS " not in git(repo.root, "ls-files", "-v")


async def test_an_index_that_git_does_not_read_stops_no_command(repo: Attacked) -> None:
    # The other file of a split index is not the one that it names, say.
    git(repo.root, "update-index", "--split-index")
    for path in (repo.root / ".git").glob("sharedindex.*"):
        path.rename(path.with_suffix(f".{'a' * 40}"))
    result = await run(repo, "echo works", "secret.txt")
    assert result.output == "works\n"
    assert any("can't be marked" in text for text in result.warnings), result


async def test_what_an_ended_program_left_of_an_index_is_carried_without_marks(
    repo: Attacked,
) -> None:
    root, real = repo.root, repo.root / ".git"
    git(root, "checkout", "-q", "HEAD", "--", ".")
    place = repo.place.private_folder / "90/git/left"
    place.mkdir(parents=True)
    left = PrivateGitFolder(real, place, (root,), (root / "secret.txt",))
    left.synchronise(is_idle=True)
    (left.private / "real").mkdir()
    (left.private / "real/objects").symlink_to(real / "objects")
    write(root, "new.txt", "new")
    own = (f"--git-dir={left.private}", f"--work-tree={root}")
    assert "S secret.txt" in git(root, *own, "ls-files", "-v")
    git(root, *own, "add", "new.txt")
    later = Shells()
    later.sandboxes = Sandboxes(later.launcher, (repo.backend,))
    try:
        assert (await run(repo._replace(shells=later), "true")).code == 0
    finally:
        await later.close()
    assert not place.exists()
    marks = git(root, "ls-files", "-v")
    assert "H new.txt" in marks
    assert "H secret.txt" in marks


async def test_hidden_files_of_linked_work_trees_and_sha256(it: Attacked, tmp_path: Path) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock mounts nothing")
    subprocess.run(["rm", "-rf", it.root / ".git"], check=True)
    git(it.root, "init", "-q", "-b", "master", "--object-format=sha256")
    git(it.root, "config", "user.email", "a@example.com")
    git(it.root, "config", "user.name", "A")
    write(it.root, "secret.txt", SECRETS[0])
    git(it.root, "add", ".")
    git(it.root, "commit", "-qm", "1")
    git(it.root, "worktree", "add", "-q", "-b", "tree", "tree")
    write(it.root, "tree/secret.txt", SECRETS[2])
    git(it.root / "tree", "commit", "-qam", "2")
    line = "git log -p --all; git cat-file --batch-all-objects --batch; cd tree; git log -p; git show :secret.txt"
    result = await run(it, line, "secret.txt", "tree/secret.txt")
    assert "Author: A" in result.output
    assert not any(secret in result.output for secret in SECRETS), result.output


@pytest.mark.parametrize("hidden", ["secret.txt", "keys"])
async def test_no_command_resolves_a_conflict_in_a_hidden_file(repo: Attacked, hidden: str) -> None:
    root = repo.root
    git(root, "merge", "-q", "side", code=1)
    stages = git(root, "ls-files", "-u")
    assert stages.count("secret.txt") == 3
    assert stages.count("keys/deep/a") == 2
    head = git(root, "rev-parse", "HEAD")
    others = {"secret.txt": "keys", "keys": "secret.txt"}[hidden]
    for line in (
        "git add -A",
        "git add -u",
        "git commit -qam x",
        f"git add {hidden}",
        f"git add {others}; git add .; git commit -qm x",
        "git stash -q; git rm -rq --cached nothing; git add -A; git commit -qm x",
    ):
        result = await run(repo, line, hidden)
        kept = [row for row in git(root, "ls-files", "-u").splitlines() if f"\t{hidden}" in row]
        assert len(kept) == stages.count(f"\t{hidden}"), (line, result)
        assert git(root, "rev-parse", "HEAD") == head, (line, result)
    assert (await run(repo, "echo 1 > new.txt; git add new.txt", hidden)).code == 0
    assert "new.txt" in git(root, "diff", "--cached", "--name-only")
