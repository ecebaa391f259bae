"""Work trees for the tests of snapshots and undo: real git, real files."""

import os
import subprocess
from pathlib import Path

from codeloop.workspace.snapshot.snapshots import Snapshot, Snapshots
from codeloop.workspace.snapshot.step_recorder import StepChanges, StepRecorder

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> str:
    """Run git and return what it prints."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


def write(root: Path, files: dict[str, str]) -> None:
    """Write files, making their folders."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def repository(root: Path, files: dict[str, str]) -> Path:
    """Make a repository with one commit of these files."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first", "--allow-empty")
    return root


def everything(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes (a link's target) of every file below, `.git` included."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(root))] = (mode, data)
    return found


def visible(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and bytes of every file below but those of git."""
    return {name: what for name, what in everything(root).items() if not f"/{name}".count("/.git/")}


def git_state(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return the bytes of the whole git folder."""
    return everything(root / ".git")


def snapshots_of(root: Path, home: Path) -> Snapshots:
    """Return the snapshots of a work tree, kept below `home`."""
    return Snapshots(root, home / "snapshot", ENVIRONMENT)


async def taken(snapshots: Snapshots) -> Snapshot:
    """Take a snapshot that can be taken."""
    found = await snapshots.take(fresh=True)
    assert isinstance(found, Snapshot), found
    return found


async def recorded(recorder: StepRecorder) -> StepChanges:
    """End a step in which something was recorded."""
    found = await recorder.finish()
    assert found is not None
    return found


def names_in(snapshots: Snapshots, tree: str) -> list[str]:
    """Return the paths in a tree, as git itself reads it."""
    shown = git(
        snapshots.root,
        f"--git-dir={snapshots.objects.folder}",
        "ls-tree",
        "-r",
        "-z",
        "--name-only",
        tree,
    )
    return sorted(name for name in shown.split("\0") if name)
