"""A git directory of ours works as the real one: git's changes arrive there,
and settings are only data.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from codeloop.kit.git import find_git_folder, make_git_call
from codeloop.kit.git.own_folder import UnusableRepository, open_own_folder, read_real_folder
from codeloop.kit.programs import exclude_folder
from tests.workspace.snapshot.trees_on_disk import git, repository, write

pytestmark = pytest.mark.slow
IDENTITY = ("-c", "user.name=n", "-c", "user.email=n@e")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def run(root: Path, home: Path, *words: str) -> str:
    """Run git by a directory of ours, and return what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    folder = find_git_folder(root)
    assert folder is not None
    with open_own_folder(read_real_folder(folder, environment), environment) as own:
        call = make_git_call(own, f"--work-tree={root}", *words, environment=environment)
        done = subprocess.run(
            call.command, env=call.environment, cwd=root, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert not own.exists()
    return done.stdout.decode()


def set_globally(home: Path, name: str, value: str) -> None:
    git(home, "config", "--file", str(home / ".gitconfig"), name, value)


@pytest.mark.parametrize("is_linked", [False, True])
def test_a_commit_moves_the_branch_or_the_detached_head(
    tmp_path: Path, home: Path, *, is_linked: bool
) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    if is_linked:
        git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
        root = tmp_path / "linked"
    for name, words in (("branch", ()), ("detached", ("checkout", "-q", "--detach"))):
        if words:
            git(root, *words)
        write(root, {f"{name}.txt": "n\n"})
        run(root, home, "add", "--all")
        run(root, home, *IDENTITY, "commit", "-q", "-m", name)
        assert git(root, "log", "-1", "--format=%s").strip() == name
        assert git(root, "status", "--porcelain") == ""
        assert "commit: " in git(root, "reflog", "-1")
    git(root, "fsck", "--strict")
    run(root, home, "checkout", "-q", "-B", "new")
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD").strip() == "new"


def test_a_head_that_moved_meanwhile_stays(tmp_path: Path, home: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with ExitStack() as stack:
        own = stack.enter_context(
            open_own_folder(read_real_folder(root / ".git", environment), environment)
        )
        (own / "HEAD").write_text("ref: refs/heads/ours\n")
        git(root, "checkout", "-q", "-b", "theirs")
        with pytest.raises(UnusableRepository, match="changed meanwhile"):
            stack.close()
    assert git(root, "symbolic-ref", "HEAD").strip() == "refs/heads/theirs"
    assert not (root / ".git/HEAD.lock").exists()


def test_a_merge_that_is_under_way_is_finished(tmp_path: Path, home: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    git(root, "checkout", "-q", "-b", "side")
    write(root, {"b.txt": "b\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "side")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "--no-commit", "side")
    run(root, home, *IDENTITY, "commit", "-q", "-m", "merged")
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2
    assert not (root / ".git/MERGE_HEAD").exists()


def test_split_indexes_packed_and_shallow_repositories_stay_whole(
    tmp_path: Path, home: Path
) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n", "b.txt": "b\n"})
    git(root, "commit", "-q", "--allow-empty", "-m", "second")
    git(root, "branch", "side")
    git(root, "pack-refs", "--all")
    git(root, "update-index", "--split-index")
    write(root, {"c.txt": "c\n"})
    run(root, home, "add", "--all")
    assert git(root, "ls-files").split() == ["a.txt", "b.txt", "c.txt"]
    run(root, home, "branch", "-q", "-D", "side")
    assert git(root, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main"]
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(tmp_path / "shallow"))
    assert run(tmp_path / "shallow", home, "rev-list", "--count", "HEAD").strip() == "1"


def test_settings_that_decide_about_contents_hold(tmp_path: Path, home: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n", "run.sh": "x\n"})
    set_globally(home, "core.autocrlf", "true")
    git(root, "config", "core.fileMode", "false")
    git(root, "config", "core.excludesFile", "~/ignored")
    (home / "ignored").write_text("*.log\n")
    (root / ".git/info/exclude").write_text("!kept.log\n")
    write(root, {"a.txt": "a\r\n", "x.log": "", "kept.log": ""})
    (root / "run.sh").chmod(0o755)
    run(root, home, "add", "--all")
    assert run(root, home, "diff", "--cached", "--name-only").split() == ["kept.log"]


def test_the_users_includes_hold_for_the_real_folder(tmp_path: Path, home: Path) -> None:
    root = repository(tmp_path / "work", {"a.txt": "a\n"})
    git(root, "remote", "add", "origin", "https://example.org/x/y.git")
    conditions = {
        f"gitdir:{tmp_path}/": True,
        "gitdir:~/": False,
        "gitdir:work/": True,
        "gitdir:work": False,
        "gitdir/i:WORK/.GIT": True,
        "onbranch:main": True,
        "onbranch:m*": True,
        "onbranch:other/": False,
        "hasconfig:remote.*.url:https://example.org/**": True,
        "hasconfig:remote.*.url:https://example.com/**": False,
    }
    for condition, holds in conditions.items():
        (home / ".gitconfig").write_text(
            f'[user]\n\tname = usual\n[includeIf "{condition}"]\n\tpath = other\n'
        )
        (home / "other").write_text("[user]\n\tname = other\n")
        real = read_real_folder(root / ".git", {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})
        assert (condition, real.get("user.name")) == (condition, "other" if holds else "usual")
        command = ["git", "config", "user.name"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
        printed = subprocess.check_output(command, cwd=root, env=environment, text=True)
        assert (condition, printed.strip()) == (condition, real.get("user.name"))


def test_formats_are_known_or_refused(tmp_path: Path, home: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "-q", "--object-format=sha256", str(root))
    write(root, {"a.txt": "a\n"})
    run(root, home, "add", "--all")
    run(root, home, *IDENTITY, "commit", "-q", "-m", "one")
    assert len(git(root, "rev-parse", "HEAD").strip()) == 64
    (root / ".git/config").write_text(
        "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tfuture = x\n"
    )
    with pytest.raises(UnusableRepository, match="the extension future"):
        run(root, home, "status")


def test_our_folder_is_not_where_commands_write(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(tmp_path / "work", {"tmp/a.txt": "a\n"})
    monkeypatch.setattr("codeloop.kit.programs._excluded_folders", set[str]())
    exclude_folder(root)
    monkeypatch.setattr(tempfile, "tempdir", str(root / "tmp"))
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    with open_own_folder(read_real_folder(root / ".git", environment), environment) as own:
        assert not own.is_relative_to(root)
        assert own.parent.stat().st_mode & 0o777 == 0o700


LOOK_AGAIN = """
import sys, time
from pathlib import Path
from codeloop.kit.git import find_outside_link

folder, elsewhere = map(Path, sys.argv[1:])
read = []
sys.addaudithook(lambda event, arguments: event == "os.scandir" and read.append(arguments[0]))

def look() -> int:
    read.clear()
    assert find_outside_link(folder) is None
    return len(read)

assert look() > 50
# What is newer than the file system's clock tells apart is read again.
while look():
    time.sleep(0.05)
link = folder / "refs" / "heads" / "b7" / "planted"
link.symlink_to(elsewhere)
assert find_outside_link(folder) == link
link.unlink()
assert look() == 1
link.parent.rename(folder / "b7")
link.parent.symlink_to(elsewhere)
assert find_outside_link(folder) == link.parent
"""


def test_folders_of_references_are_read_again_only_when_they_have_changed(tmp_path: Path) -> None:
    folder = tmp_path / "work" / ".git"
    for number in range(50):
        (folder / "refs" / "heads" / f"b{number}").mkdir(parents=True)
    (folder / "objects").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AGAIN, str(folder), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
