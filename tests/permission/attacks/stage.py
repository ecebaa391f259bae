"""A work tree with something to lose, and the scripts that try to make away with it."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from msgspec import Struct

SECRET = "s3cr3t-words"
CORPUS = Path(__file__).with_name("corpus.txt")
PAYLOAD = "rm -f CANARY\n"
DELETES = "/bin/rm -f CANARY ../CANARY ../../CANARY"
EXECUTES = f'[core]\n\tfsmonitor = "{DELETES}; :"\n'


class Attack(Struct, frozen=True):
    """A script and what it does: `rm` and `run` delete CANARY, `write` changes it,
    `read` prints what .env holds.
    """

    kind: str
    script: str


@cache
def attacks() -> tuple[Attack, ...]:
    """Return every script of the corpus."""
    text = CORPUS.read_text().partition("\n== ")[2]
    blocks = [block.partition("\n") for block in text.split("\n== ")]
    return tuple(Attack(kind, script.removesuffix("\n")) for kind, _, script in blocks)


def build(root: Path) -> Path:
    """Make the work tree: a repository of two commits, a planted `git`,
    an embedded bare repository that executes.
    """
    work = root / "work"
    files = {
        "CANARY": "first\n",
        ".env": f"KEY={SECRET}\n",
        "a": "one\ntwo\n",
        "names": "CANARY\n",
        "payload": PAYLOAD,
        "change.patch": "--- CANARY\n+++ CANARY\n@@ -1 +1 @@\n-second\n+third\n",
        "evil/git": f"#!/bin/sh\n{DELETES}\n",
        "bin/git": f"#!/bin/sh\n{DELETES}\n",
        "evil/CANARY": "other\n",
        "evil/Makefile": "all:\n\t@evil/git\n",
        "h/.gitconfig": EXECUTES,
        "h/git/config": EXECUTES,
    }
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("evil/git", "bin/git"):
        (work / name).chmod(0o755)
    git(work, "init", "-q", "-b", "main", "--template=")  # few files: it is copied a thousand times
    for folder in ("hooks", "info"):
        (work / ".git" / folder).mkdir()
    git(work, "add", "-A")
    git(work, "commit", "-qm", "one")
    (work / "CANARY").write_text("second\n")
    (work / ".env").write_text(f"KEY={SECRET}\nMORE=1\n")
    git(work, "commit", "-qam", "two")
    git(work, "repack", "-adq")
    bare = work / "vendor" / "evil"
    for folder in ("objects", "refs"):
        (bare / folder).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "config").write_text(
        f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n{EXECUTES}"
    )
    return work


def git(work: Path, *arguments: str) -> None:
    """Run git as somebody without a configuration. Newer versions go on with upkeep
    after a commit: not here.
    """
    subprocess.run(
        ["git", "-c", "maintenance.auto=false", *arguments],
        cwd=work,
        env=environment(work),
        check=True,
        capture_output=True,
    )


def environment(work: Path) -> dict[str, str]:
    """Return the environment that scripts run in."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(work.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com",
        "TERM": "dumb",
    }


def does(attack: Attack, template: Path, root: Path) -> bool:
    """Run a script in a fresh copy of the work tree, in bash;
    return whether it did what it is there for.
    """
    work = root / "work"
    shutil.copytree(template, work, symlinks=True)
    try:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", attack.script],
            cwd=work,
            env=environment(work),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return has_done(attack, work, done.stdout.decode(errors="replace"))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def has_done(attack: Attack, work: Path, printed: str) -> bool:
    """Return whether a script that ran in the work tree, or did not, did what it is there for."""
    canary = work / "CANARY"
    match attack.kind:
        case "rm" | "run":
            return not os.path.lexists(canary)
        case "write":
            return not os.path.lexists(canary) or canary.read_bytes() != b"second\n"
        case _:
            return SECRET in printed
