"""Runs git on the real objects and references of a git folder, but with a configuration,
logs and a HEAD of ours.
"""

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import GitCall, make_git_call
from codeloop.kit.small_files import create_private_folder, read_start_or_empty
from codeloop.schema.limits import VCS_TIME

_CONFIG_BYTES = 256 * 1024
# The deadline for a pack, which git reads and checks as a whole.
_PACK_SECONDS = 1_800


class OwnGit:
    """Git for one real git folder. `place`: a folder of ours, which is filled at the first use.

    Nothing of the real folder decides what git runs, and it writes no log there. Its methods raise
    OSError when git can't be started; a deadline that passes is a failure of git.
    """

    def __init__(self, real: Path, place: Path) -> None:
        self._real = real
        self._place = place
        self._is_made = False

    def succeeds(self, arguments: Sequence[str], data: bytes = b"") -> bool:
        """Run git with `data` as its input. Returns whether its exit code is 0."""
        self._make_folder()
        call = make_git_call(self._place, *arguments, environment=os.environ)
        return _finish(call, data=data, seconds=VCS_TIME.seconds)

    def store_pack(self, pack: int, options: Sequence[str]) -> bool:
        """Check a pack, an open file, and add it to the real objects.
        Returns whether it is there.
        """
        self._make_folder()
        call = make_git_call(
            self._place, "index-pack", "--stdin", "--fix-thin", *options, environment=os.environ
        )
        return _finish(call, file=pack, seconds=_PACK_SECONDS)

    def _make_folder(self) -> None:
        if self._is_made:
            return
        self._is_made = True
        create_private_folder(self._place)
        config = read_start_or_empty(self._real / "config", _CONFIG_BYTES).lower()
        version, extension = (
            (1, "[extensions]\n\tobjectformat = sha256\n") if b"sha256" in config else (0, "")
        )
        # Of a bare repository git writes no logs.
        text = f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
        (self._place / "config").write_text(text)
        (self._place / "HEAD").write_text("ref: refs/heads/codeloop-none\n")
        for name in ("objects", "refs", "packed-refs", "shallow"):
            link = self._place / name
            link.unlink(missing_ok=True)
            link.symlink_to(self._real / name)


class ReadingGit(NamedTuple):
    """Git for a real git folder, which it only reads. `path`: the folder of ours that it uses."""

    path: Path

    def run(
        self,
        arguments: Sequence[str],
        data: bytes = b"",
        variables: dict[str, str] | None = None,
        seconds: float = VCS_TIME.seconds,
    ) -> bytes:
        """Run git with `data` as its input. Returns its output. Raises OSError if it fails."""
        call = make_git_call(self.path, *arguments, environment=os.environ)
        try:
            ended = subprocess.run(
                call.command,
                check=False,
                capture_output=True,
                env={**call.environment, **(variables or {})},
                input=data,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise OSError(0, f"git took longer than {seconds:.0f} s") from error
        if ended.returncode:
            reason = " ".join(ended.stderr.decode("utf-8", "replace").split()[-20:])
            raise OSError(0, f"git {arguments[0]}: {reason}")
        return ended.stdout


@contextmanager
def open_reading_git(real: Path) -> Generator[ReadingGit]:
    """Yield git for a real git folder. Raises OSError."""
    # Imported late: most projects hide no tracked file.
    from codeloop.kit.git.own_folder import UnusableRepository, open_own_folder, read_real_folder

    try:
        with open_own_folder(read_real_folder(real, os.environ), os.environ) as folder:
            yield ReadingGit(folder)
    except UnusableRepository as error:
        raise OSError(0, str(error)) from error


def _finish(
    call: GitCall, *, seconds: float, data: bytes | None = None, file: int | None = None
) -> bool:
    """Run git to its end, with `data` or an open file as its input.
    Returns whether its exit code is 0.
    """
    try:
        ended = subprocess.run(
            call.command,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=call.environment,
            input=data,
            stdin=file,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0
