"""A simple command of a shell line, with its redirections, and its text as rules see it."""

import re

from msgspec import Struct

from codeloop.shell.word import Word

_SYSTEM_FOLDER = r"/(?:usr/(?:local/)?|opt/homebrew/)?s?bin"
_RESERVED_WORDS = (
    "! { } [[ ]] case do done elif else esac fi for function if in select then until while"
)
RESERVED_WORDS = frozenset(_RESERVED_WORDS.split())
"""Reserved words of bash: no command is named so."""


class Redirect(Struct, frozen=True):
    """A redirection: its operator, with the descriptor (`2>`), and its target."""

    operator: str
    target: Word

    @property
    def is_file(self) -> bool:
        """Whether it opens a file, rather than duplicating a descriptor (`2>&1`)."""
        return not (self.operator.endswith("&") and re.fullmatch(r"[\d-]+", self.target.value))

    @property
    def text(self) -> str:
        """The redirection as rules see it."""
        return (
            f"{self.operator} {self.target.text}"
            if self.is_file
            else self.operator + self.target.text
        )

    @property
    def marked_text(self) -> str:
        """The redirection with the marks of `kit.wildcard` for its unknown parts."""
        return self.operator + self.target.marked_text if self.is_file else self.text


class SimpleCommand(Struct, frozen=True):
    """A simple command: its words (the name first), its redirections,
    and the text of its standard input.

    `stdin`: None if the line does not give that text, or if it is only known at run time.
    `is_plain_step`: it is a step of the line itself, in no pipeline, group or substitution,
    so that `cd` in it lasts.
    `operator`: the one behind it, if the small grammar read it.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    is_plain_step: bool = False
    operator: str = ""

    @property
    def text(self) -> str:
        """The command as rules see it, assignments before it left out."""
        texts = [
            *(word.text for word in self.words),
            *(redirect.text for redirect in self.redirects),
        ]
        return " ".join(text for text in texts if text)

    @property
    def marked_text(self) -> str | None:
        """The command with the marks of `kit.wildcard` for its unknown parts;
        None when all of it is known.
        """
        if all(word.is_known for word in self.words) and all(
            redirect.target.is_known for redirect in self.redirects
        ):
            return None
        parts = [word.marked_text for word in self.words]
        parts += [" " + redirect.marked_text for redirect in self.redirects]
        return "".join(parts).removeprefix(" ")


def strip_system_folder(name: str) -> str:
    """Return the name that rules know a program by: without the directory,
    when that is one of the system's.
    """
    folder, _, base = name.rpartition("/")
    return base if base and re.fullmatch(_SYSTEM_FOLDER, folder) else name
