"""Reads blobs of the repositories of the user, which may be packed, by running git."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from codeloop.kit.git import make_git_call
from codeloop.kit.programs import make_child_environment

# One git is asked for so many objects, whose contents are in memory at once.
_MAX_ASKED = 1000


def read_with_git(
    folder: Path, object_ids: list[str], environment: Mapping[str, str]
) -> Iterator[tuple[str, bytes]]:
    """Yield shared blobs, which may be packed, by running git.
    It reads no configuration but ours, and runs nothing.
    """
    import subprocess

    call = make_git_call(folder, "cat-file", "--batch", environment=environment)
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
                env=make_child_environment(call.environment, folder),
                cwd=folder,
                check=False,
            )
        except OSError:
            return
        yield from _parse_answers(process.stdout)


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
