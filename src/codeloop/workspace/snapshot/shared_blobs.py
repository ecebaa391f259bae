"""Reads blobs of the repositories of the user, which may be packed, by running git."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from codeloop.kit.git import find_blocking_file, make_git_call
from codeloop.kit.programs import make_child_environment

# One git is asked for so many objects, whose contents are in memory at once.
_MAX_ASKED = 1000
_ALTERNATES = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


class SharedObjects(NamedTuple):
    """The objects of the user's repositories, for the store in `folder`.

    `object_folders`: the repositories' directories of objects.
    """

    folder: Path
    object_folders: tuple[Path, ...]
    environment: Mapping[str, str]

    def read_blobs(self, object_ids: list[str]) -> Iterator[tuple[str, bytes]]:
        """Yield id and content of these blobs, which may be packed, by running git;
        missing ones are skipped. It reads no configuration but ours, and runs nothing.
        """
        import subprocess

        call = make_git_call(self.folder, "cat-file", "--batch", environment=self.environment)
        # git would wait for ever for a named pipe in one of them.
        readable = [path for path in self.object_folders if find_blocking_file(path.parent) is None]
        variables = {**call.environment, _ALTERNATES: ":".join(map(_quote, readable))}
        for start in range(0, len(object_ids), _MAX_ASKED):
            asked_ids = object_ids[start : start + _MAX_ASKED]
            try:
                # Without a deadline: what git reads is bounded,
                # and without it these files could not be undone.
                process = subprocess.run(
                    call.command,
                    input="".join(f"{object_id}\n" for object_id in asked_ids).encode(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=make_child_environment(variables, self.folder),
                    cwd=self.folder,
                    check=False,
                )
            except OSError:
                return
            yield from _parse_answers(process.stdout)


def _quote(path: Path) -> str:
    """Return a path as git reads it in its list of directories, whatever bytes it has."""
    octal = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'\\"' else f"\\{byte:03o}"
        for byte in os.fsencode(path)
    )
    return f'"{octal}"'


def _parse_answers(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield id and content of each blob in an output of `git cat-file --batch`."""
    # For each object: a line with id, kind and size, then the content and a line end. A missing one
    # has the line alone, with the word "missing".
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        object_id, *fields = output[position:end].decode().split()
        position = end + 1
        if len(fields) == 2:
            kind, size = fields[0], int(fields[1])
            if kind == "blob":
                yield object_id, output[position : position + size]
            position += size + 1
