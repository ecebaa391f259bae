"""What a shell line would do, without running it: its simple commands, the paths it names, whether it only reads."""

import time
from pathlib import Path

from msgspec import Struct

from codeloop.kit.wildcard import ANY
from codeloop.permission.shell.arity import leading_words
from codeloop.permission.shell.command import Simple
from codeloop.permission.shell.parser import Script, TooMuch
from codeloop.permission.shell.paths import named_paths
from codeloop.permission.shell.read_only import only_reads
from codeloop.schema.limits import BASH_PARSE, BASH_SIZE
from codeloop.schema.permission import Need

SHOWN = 1_000
COMPARED = 256


class Analysis(Struct, frozen=True):
    """What is known of a line before it runs.

    `commands`: the text of every simple command, also of those inside others, one spelling for all ways of quoting.
    `always`: what an "always" would allow, a wildcard a command. `paths`: the paths it names, absolute or relative to
    where it runs, `~` kept. `possible`: what it may run besides, with the marks of `kit.wildcard`; `certain`: of every
    command at least the name is known. `read_only`: it is sure to change nothing.
    """

    commands: tuple[str, ...]
    always: tuple[str, ...]
    paths: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    certain: bool = True
    read_only: bool = False


def analyse(command: str) -> Analysis:
    """Analyse a line of bash. Never fails: what it can't read (too long, too deep, not shell) is not certain."""
    script = Script(deadline=time.monotonic() + BASH_PARSE.seconds)
    try:
        if len(command) > BASH_SIZE.value:
            raise TooMuch
        script.read(command)
    except TooMuch:
        script.is_unknown = True
    found = script.commands
    texts = tuple(dict.fromkeys(simple.text for simple in found)) or (command[:SHOWN].strip() or ":",)
    possible = dict.fromkeys(shortened(simple.possible) for simple in found if simple.possible is not None)
    if script.is_unknown:
        possible = {ANY: None, **possible}
    return Analysis(
        commands=texts,
        always=tuple(dict.fromkeys(_always(simple) for simple in found if simple.words[0].is_known)),
        paths=named_paths(found),
        possible=tuple(possible),
        certain=not script.is_unknown,
        read_only=not script.is_unknown and bool(found) and all(map(only_reads, found)),
    )


def shortened(text: str) -> str:
    """Cut what is compared with rules to a bounded length; the rest is unknown."""
    return text if len(text) <= COMPARED else text[:COMPARED] + ANY


def _always(simple: Simple) -> str:
    known = [word.text for word in simple.words]
    for index, word in enumerate(simple.words):
        if not word.is_known:
            known = known[:index]
            break
    return " ".join(leading_words(known)) + " *"


def need(command: str, directory: Path | None = None) -> Need:
    """Return what running the line in `directory` needs: permission `bash`, a pattern a simple command."""
    return need_of(command, analyse(command), directory)


def need_of(command: str, analysis: Analysis, directory: Path | None = None) -> Need:
    """Return what running a line that has been analysed needs."""
    metadata: dict[str, object] = {"command": command}
    if directory is not None:
        metadata["workdir"] = str(directory)
    return Need(
        permission="bash",
        patterns=analysis.commands,
        always=analysis.always,
        metadata=metadata,
        possible=analysis.possible,
    )
