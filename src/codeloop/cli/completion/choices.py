"""What may take the place of a word that is being typed."""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from click.shell_completion import CompletionItem

from codeloop.kit.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import COMPLETED

Choice = tuple[str, str]
"""A value and what it is."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@+-]*")
"""What a shell takes as one word as it stands: other names, which a project may have chosen, are not offered."""


def begun(found: Callable[[str], Iterator[Choice]], typed: str) -> list[CompletionItem[str]]:
    """Return the choices that begin with what is typed; none where configuration or store can't be read."""
    try:
        fitting = [(name, text) for name, text in found(typed) if name.startswith(typed) and _PLAIN.fullmatch(name)]
    except (CodeloopError, OSError):
        return []
    return [CompletionItem(name, help=one_line(text, 60) or None) for name, text in islice(fitting, COMPLETED.value)]
