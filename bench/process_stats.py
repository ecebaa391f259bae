"""Reads CPU and memory of running processes from /proc of Linux."""

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path


def read_cpu(pid: int) -> float:
    """Return the processor time that a process has used, user and system, seconds;
    0.0 when it has ended.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = _split_stat(text)
    # `utime` and `stime` of proc(5), there the 14th and 15th field: two precede the fields here.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_resident_memory(pid: int) -> float:
    """Return the resident memory of a process, MB. Raises OSError when it has ended."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def read_proportional_memory(pid: int) -> float:
    """Return the memory of a process with its share of the pages that others use, too, MB;
    0.0 when it has ended.

    A sum of these (PSS) over many processes counts each page once;
    a sum of resident memory counts it many times.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def list_process_trees(pid: int) -> list[list[int]]:
    """Return one list of ids for each child of a process: the child,
    then all processes below it.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        # A process may end between the listing and the reading.
        with suppress(OSError):
            parent = int(_split_stat((folder / "stat").read_text())[1])
            children[parent].append(int(folder.name))

    def list_tree(root: int) -> list[int]:
        return [root, *(each for child in children[root] for each in list_tree(child))]

    return [list_tree(child) for child in children[pid]]


def _split_stat(text: str) -> list[str]:
    """Return the fields after the program's name: the state, the parent, ...

    The name is in parentheses and may itself contain spaces or a `)`.
    """
    return text.rpartition(")")[2].split()
