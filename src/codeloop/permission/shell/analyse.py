"""Analyses a shell line without running it: its simple commands, the paths it names, whether it only reads."""

import re
import time
from collections.abc import Sequence

from msgspec import Struct

from codeloop.kit.wildcard import ANY
from codeloop.permission.remote.acts import acts_remotely, contains_act, mentions_act
from codeloop.permission.shell.arity import find_leading_words, list_spellings
from codeloop.permission.shell.command import Redirect, SimpleCommand
from codeloop.permission.shell.effects import is_destructive
from codeloop.permission.shell.parser import Script, TooMuch
from codeloop.permission.shell.paths import Touches, find_touches
from codeloop.permission.shell.proof import Facts, Proof, prove
from codeloop.permission.shell.runners import is_runner
from codeloop.permission.shell.wrappers import NOTHING, unwrap
from codeloop.schema.limits import BASH_PARSE, BASH_SIZE
from codeloop.schema.permission import Need, Writes

_MAX_SHOWN_CHARS = 1_000
REMOTE_KEY = "remote"
"""Metadata key: the commands of the line that change something on another machine or service."""
_MAX_COMPARED_CHARS = 256
"""Characters of a text that are compared with rules: the time of a comparison grows with text times pattern."""
_CONTAINERS = frozenset({"docker", "nerdctl", "podman"})
_BETWEEN = re.compile(r"[\s;|&()<>`'\"]+")


class Analysis(Struct, frozen=True):
    """The analysis of a shell line.

    `commands`: the text of every simple command, also of those inside others, one spelling for all ways of quoting.
    `always`: what an "always" would allow, a wildcard a command. `touches`: the files that it reads and writes.
    `possible`: what it may run besides, with the marks of `kit.wildcard`. `spellings`: what else rules may know one of
    the commands by. `proof`: what is certain of the line. `destructive`: it may delete files that git ignores.
    """

    commands: tuple[str, ...]
    always: tuple[str, ...]
    touches: Touches = Touches()
    possible: tuple[str, ...] = ()
    spellings: dict[str, tuple[str, ...]] = {}
    proof: Proof = Proof()
    destructive: bool = False
    remote: tuple[str, ...] = ()
    """Which of the commands, and of what it may run besides, change something on another machine or service."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The files that it reads, those of whole folders included, and words that are perhaps a file."""
        return (*self.touches.reads, *self.touches.searches, *self.touches.browses, *self.touches.perhaps)

    @property
    def writes(self) -> tuple[str, ...]:
        """The files that it writes, and the folders in which it writes what the line does not name."""
        return (*self.touches.writes, *self.touches.fills, *self.touches.wholes)

    @property
    def read_only(self) -> bool:
        """Whether it certainly changes nothing."""
        return self.proof.read_only


def analyse(command: str, facts: Facts | None = None) -> Analysis:
    """Analyse a line of bash. Never fails: what can't be parsed (too long, too deep, not shell) may run anything.

    `facts`: what is known of where it will run; None: nothing, so that names are taken for the programs they name.
    """
    script = Script(deadline=time.monotonic() + BASH_PARSE.seconds)
    is_cut = False
    try:
        if len(command) > BASH_SIZE.value:
            raise TooMuch
        script.read(command)
    except TooMuch:
        script.is_unknown = is_cut = True
    commands = script.commands
    texts = tuple(dict.fromkeys(simple.text for simple in commands)) or (command[:_MAX_SHOWN_CHARS].strip() or ":",)
    possible = dict.fromkeys(shorten(simple.possible) for simple in commands if simple.possible is not None)
    if script.is_unknown:
        possible = {ANY: None, **possible}
    return Analysis(
        commands=texts,
        always=_make_always_patterns(commands),
        touches=find_touches(script),
        possible=tuple(possible),
        spellings={
            simple.text: others for simple in commands if (others := tuple(map(shorten, list_spellings(simple))))
        },
        proof=prove(command, facts or Facts()),
        destructive=any(map(is_destructive, commands)) or (script.is_unknown and not commands),
        remote=_find_remote(commands, texts, command if is_cut or not commands else ""),
    )


def _find_remote(simple_commands: Sequence[SimpleCommand], texts: Sequence[str], unread: str) -> tuple[str, ...]:
    """Return the texts of commands that act on other machines; all of them when one is in an unparsed part.

    `unread`: the line, if it was not parsed to its end.
    """
    if mentions_act(_BETWEEN.split(unread[: BASH_SIZE.value])):
        return tuple(texts)
    acting = [simple for simple in simple_commands if _acts(simple)]
    possible = [shorten(simple.possible) for simple in acting if simple.possible is not None]
    return tuple(dict.fromkeys([*(simple.text for simple in acting), *possible]))


def _acts(simple: SimpleCommand) -> bool:
    words = [word.value for word in simple.words]
    return acts_remotely(words) or ((is_runner(words[0]) or words[0] in _CONTAINERS) and contains_act(words))


def shorten(text: str) -> str:
    """Cut a text for comparison with rules; the rest becomes unknown."""
    return text if len(text) <= _MAX_COMPARED_CHARS else text[:_MAX_COMPARED_CHARS] + ANY


def _make_always_patterns(simple_commands: Sequence[SimpleCommand]) -> tuple[str, ...]:
    """Return the patterns of an "always": for each command the words that identify it, and any arguments.

    None at all if the line redirects to a file, or if a command in it runs another: `sudo *` would allow everything.
    """
    for simple in simple_commands:
        writes = any(redirect.is_file and not _is_harmless(redirect) for redirect in simple.redirects)
        if writes or not all(word.is_known for word in simple.words) or unwrap(simple.words) != NOTHING:
            return ()
    return tuple(
        dict.fromkeys(" ".join(find_leading_words([word.text for word in s.words])) + " *" for s in simple_commands)
    )


def _is_harmless(redirect: Redirect) -> bool:
    return "<" in redirect.operator or redirect.target.value == "/dev/null"


def make_need(command: str, analysis: Analysis) -> Need:
    """Return the permission that an analysed line needs: `bash`, with a pattern for each simple command."""
    return Need(
        permission="bash",
        patterns=analysis.commands,
        always=() if analysis.proof.unproven else analysis.always,
        metadata={"command": command, **({REMOTE_KEY: list(analysis.remote)} if analysis.remote else {})},
        possible=analysis.possible,
        spellings=analysis.spellings,
        traits=("read-only",) if analysis.read_only else (),
        remote=analysis.remote,
        unproven=analysis.proof.unproven,
        writes=Writes(ignored=analysis.destructive),
    )
