"""Finds what a sandbox has refused to a helper program in what the program says,
and keeps the last refusals of each.

A program says only "No such file" or "Read-only file system". Here its words are compared with
what its sandbox shows: a path counts only if it is there, or could be made, without the sandbox.
"""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from codeloop.kit.small_files import create_private_folder, read_start, write_atomically
from codeloop.schema.wire import DECODE_ERRORS
from codeloop.workspace.sandbox.named_paths import is_broad
from codeloop.workspace.sandbox.paths.linked_paths import (
    exists,
    find_kind,
    is_below_any,
    is_folder,
    keep_outermost,
    resolve_links,
)
from codeloop.workspace.sandbox.paths.restricted_paths import TEMPORARY_FOLDERS
from codeloop.workspace.sandbox.policy import SandboxPolicy

RefusalKind = Literal["read", "write", "env", "host", "off"]
"""`off`: a device or a socket, which no sandbox lets a program reach."""

# The words of shells, Python, Node, Go, Rust, Java, .NET, SQLite and DuckDB.
_MISSING = (
    r"(?i)no such file|not found|ENOENT|does ?n[o']t exist|cannot find|can't (?:find|open)|not exist"
    r"|could not (?:find|open)|unable to (?:open|find|read)|FileNotFound|NoSuchFile|failed to (?:open|read|load)"
    r"|not a directory|ENOTDIR|cannot open|cannot access"
)
_REFUSED = (
    r"(?i)read-only file ?system|permission denied|operation not permitted|\bEROFS\b|\bEACCES\b|\bEPERM\b"
    r"|access to the path|readonly database|read-only database|cannot create|can't create"
    r"|could not (?:create|write)|unable to (?:create|write|open)|failed to (?:create|write|open)|\bEBUSY\b"
)
_WANTED = (
    r"(?i)required|requires|missing|not set|must (?:be set|set|provide)|undefined|please (?:set|provide)|provide|"
    r"environment variable|not (?:found|provided|configured|defined|specified)|KeyError|unset|need"
)
_PATH = (
    r"""["'`\u2018\u201c]((?:~|/)[^"'`\u2019\u201d\n]+)["'`\u2019\u201d]"""
    r"""|(?:^|[\s=<>(\[:;,])((?:~/|/)[^\s"'`()<>;,\u2018\u2019]+)"""
)
_VARIABLE = r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z]{5,}\b"
_TEMPORARY_NAME = r"(?i)[0-9a-f]{8,}|\d{6,}|^\.?~|\.te?mp\b|\.part$|^tmp"
_PACKAGE = r"(?i)cannot find (?:package|module) ['\"]((?:@[\w.-]+/)?[\w.-]+)['\"]"
_HOST = r"(?:ENOTFOUND|EAI_AGAIN|resolve host:?|lookup|resolve|for host|host=|to)\s+['\"]?((?:[\w-]+\.)+[a-z]{2,})\b"
_HOST_WORDS = (
    r"(?i)ENOTFOUND|EAI_AGAIN|could not resolve|failed to resolve|name resolution|name or service not known"
    r"|no such host|nodename nor servname|ECONNREFUSED|getaddrinfo|ProxyError|403 Forbidden"
)
_TAIL_CHARS = 20_000
_MAX_LINE_CHARS = 2_000
_MAX_REFUSALS = 8
_RECORD_BYTES = 64 * 1024
_RECORD_SUFFIX = ".refused.json"


class HelperRefusal(Struct, frozen=True):
    """Something that a helper was refused. `what`: a path, a variable, a host;
    `at`: seconds since 1970.
    """

    kind: RefusalKind
    what: str
    at: float = 0.0


class Refused(Struct, frozen=True):
    """What the search is made in: a program's sandbox, the folder and variables that it got.

    `places`: paths that its start named, which it may want to write; `given`: those that it was
    asked about last, by a call; `offered`: the variables of ours.
    """

    policy: SandboxPolicy
    home: Path
    directory: Path
    environment: Mapping[str, str]
    offered: Mapping[str, str]
    places: Sequence[Path] = ()
    given: Sequence[Path] = ()


def mentions_failure(text: str) -> bool:
    """Return whether a text has words by which programs tell of a failure; it reads no disk."""
    return any(
        re.search(words, text[-_TAIL_CHARS:])
        for words in (_MISSING, _REFUSED, _WANTED, _HOST_WORDS)
    )


def find_refusals(text: str, refused: Refused) -> list[HelperRefusal]:
    """Return the sandbox's refusals, by what a program says; without any, it did nothing."""
    found: dict[tuple[str, str], HelperRefusal] = {}
    # An error inside JSON has its quotes and line ends escaped.
    plain = re.sub(r"\\(?=[\"'/])", "", text[-_TAIL_CHARS:].replace("\\n", "\n"))
    for line in plain.splitlines():
        if len(line) <= _MAX_LINE_CHARS:
            for each in (*_find_paths(line, refused), *_find_others(line, refused)):
                found.setdefault((each.kind, each.what), each)
    is_refused = bool(re.search(_REFUSED, plain))
    if not found and (is_refused or re.search(_MISSING, plain)):
        # Many servers tell of a failure without the path.
        for path in refused.given:
            if (kind := _judge_path(resolve_links(path), refused, is_write=is_refused)) is not None:
                found[kind, str(path)] = HelperRefusal(kind, str(path))
    return list(found.values())[:_MAX_REFUSALS]


def find_lost_writes(
    refused: Refused, private_home: Path, shown: Sequence[Path]
) -> list[HelperRefusal]:
    """Return the paths that a call or the start named, and that the program could only write in
    its private home.

    `shown`: paths below the home that everybody sees.
    """
    lost = [
        path
        for path in (*refused.places, *refused.given)
        if path.is_relative_to(refused.home)
        and not is_below_any(path, shown)
        and not exists(path)
        and exists(private_home / path.relative_to(refused.home))
    ]
    return [HelperRefusal("write", str(path)) for path in keep_outermost(lost)]


def _find_paths(line: str, refused: Refused) -> Iterator[HelperRefusal]:
    is_refused = bool(re.search(_REFUSED, line))
    if not is_refused and not re.search(_MISSING, line):
        return
    has_path = False
    for quoted, plain in re.findall(_PATH, line):
        path = _resolve(quoted or plain.rstrip(".:"), refused)
        if path is None:
            continue
        has_path = True
        if (kind := _judge_path(path, refused, is_write=is_refused)) is not None:
            yield HelperRefusal(kind, str(_find_lasting(path, refused)))
    yield from _find_packages(line, refused)
    if not has_path and re.search(r"(?i)database|\.db\b|read-?only", line):
        # SQLite names no path.
        for place in refused.places:
            if _judge_path(place, refused, is_write=True) == "write":
                yield HelperRefusal("write", str(place))


def _judge_path(path: Path, refused: Refused, *, is_write: bool) -> RefusalKind | None:
    """Return the refused part of a resolved path; None: nothing."""
    policy = refused.policy
    if is_below_any(path, policy.writable) and not is_below_any(path, policy.protected):
        return None
    if path.is_relative_to("/dev") or find_kind(path) == stat.S_IFSOCK:
        is_there = os.path.lexists(path) and path.name not in {"null", "zero", "random", "urandom"}
        return "off" if is_there else None
    if path.is_relative_to("/proc") or path.is_relative_to("/sys"):
        return None
    is_shown = _is_shown(path, policy)
    if os.path.lexists(path):
        if not is_shown:
            return "write" if is_write else "read"
        above = path
    elif is_below_any(path, TEMPORARY_FOLDERS) and not is_below_any(path, policy.replaced):
        return None
    else:
        above = next((each for each in path.parents if is_folder(each)), Path("/"))
        # Nothing hides that it is not there, unless the folder is hidden: then it could be made.
        if not is_write and (_is_shown(above, policy) or is_broad(above, refused.home)):
            return None
        is_write = True
    return "write" if is_write and os.access(above, os.W_OK) and len(above.parts) > 1 else None


def _find_lasting(path: Path, refused: Refused) -> Path:
    """Return the path to allow for a refused one; for a temporary file with another name each
    time, that is the file that it was to become, or its folder.
    """
    for place in refused.places:
        # A folder that it was given to work in.
        if is_folder(place) and path.is_relative_to(resolve_links(place)):
            return place
    if exists(path):
        return path
    for place in (*refused.places, *refused.given):
        real = resolve_links(place)
        if path.parent == real.parent and path.name.strip(".").startswith(real.name):
            return place
    is_random = re.search(_TEMPORARY_NAME, path.name) and not is_broad(path.parent, refused.home)
    return path.parent if is_random else path


def _is_shown(path: Path, policy: SandboxPolicy) -> bool:
    if is_below_any(path, TEMPORARY_FOLDERS):
        return is_below_any(path, (*policy.writable, *policy.visible, *policy.layered))
    return policy.shows(path)


def _find_packages(line: str, refused: Refused) -> Iterator[HelperRefusal]:
    """Yield the folders of packages that Node did not find, though they are there."""
    for package in re.findall(_PACKAGE, line):
        for importer in re.findall(r"from ['\"]?(?:file://)?(/[^\s'\"]+)", line):
            for folder in Path(importer).parents:
                modules = folder / "node_modules"
                if exists(modules / package) and not refused.policy.shows(modules / package):
                    yield HelperRefusal("read", str(modules))
                    return


def _find_others(line: str, refused: Refused) -> Iterator[HelperRefusal]:
    """Yield the variables that a line says are missing, and the hosts that were not reached."""
    if re.search(_WANTED, line):
        for name in re.findall(_VARIABLE, line):
            if name in refused.offered and name not in refused.environment:
                yield HelperRefusal("env", name)
    if refused.policy.network != "on" and re.search(_HOST_WORDS, line):
        for host in re.findall(_HOST, line):
            if host not in refused.policy.hosts:
                yield HelperRefusal("host", host)


def _resolve(word: str, refused: Refused) -> Path | None:
    try:
        path = refused.home / word[2:] if word.startswith("~/") else refused.directory / word
        return resolve_links(path)
    except (OSError, ValueError):
        return None


def describe_refusals(refusals: Sequence[HelperRefusal], command: str, home: Path) -> str:
    """Return one line: what the sandbox refuses, and the command that allows it.

    `command`: such as `codeloop mcp allow notes`.
    """
    phrases = {
        "read": "it doesn't show",
        "write": "it doesn't let it write",
        "env": "it keeps back the variable",
        "host": "it doesn't reach",
        "off": "it can't give",
    }
    parts = [f"{phrases[each.kind]} {abbreviate(each.what, home)}" for each in refusals]
    return f"Its sandbox refused that: {', '.join(parts)}. To allow it: {command} {make_options(refusals, home)}"


def make_options(refusals: Sequence[HelperRefusal], home: Path) -> str:
    """Return the options of `allow` that allow what was refused."""
    import shlex

    if any(each.kind == "off" for each in refusals):
        return "--off"
    options: dict[str, None] = {}
    for each in refusals:
        text = abbreviate(each.what, home)
        quoted = text if re.fullmatch(r"~[\w./@+-]*", text) else shlex.quote(text)
        options[f"--{each.kind} {quoted}"] = None
    return " ".join(options)


def abbreviate(path: str, home: Path) -> str:
    """Return a path as text, below the home with `~`."""
    return f"~{path[len(str(home)) :]}" if path.startswith(f"{home}/") else path


def note_refusals(data_folder: Path, refusals: Sequence[HelperRefusal]) -> None:
    """Keep the last refusals of the helper whose own folder is `data_folder`.
    An error is ignored.
    """
    if not refusals:
        return
    now = time.time()
    rows = {(each.kind, each.what): each for each in read_refusals(data_folder)}
    for each in refusals:
        rows.pop((each.kind, each.what), None)
        rows[each.kind, each.what] = HelperRefusal(each.kind, each.what, now)
    with suppress(OSError):
        create_private_folder(data_folder.parent)
        last = list(rows.values())[-_MAX_REFUSALS:]
        write_atomically(_find_record(data_folder), msgspec.json.encode(last))


def read_refusals(data_folder: Path) -> list[HelperRefusal]:
    """Return the last refusals of a helper, the newest last."""
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(
            read_start(_find_record(data_folder), _RECORD_BYTES), type=list[HelperRefusal]
        )
    return []


def forget_refusals(data_folder: Path) -> None:
    """Remove the record of a helper, whose sandbox was changed."""
    with suppress(OSError):
        _find_record(data_folder).unlink(missing_ok=True)


def _find_record(data_folder: Path) -> Path:
    return data_folder.with_name(data_folder.name + _RECORD_SUFFIX)
