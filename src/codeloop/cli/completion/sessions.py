"""Completes ids of sessions and of "always" grants in shells, and has the helper that all completions share.

The ids are read from the store without opening the project, because the user waits for them after pressing Tab.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from click.shell_completion import CompletionItem

from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import COMPLETIONS_SHOWN
from codeloop.store.queries import SessionFilter, open_queries

CompletionChoice = tuple[str, str]
"""A value and its description."""
# What every shell reads as one plain word. A project may choose names with `$(...)` or `;` in them, which Tab must not
# put on the command line.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@+-]*")


def complete_from(list_choices: Callable[[str], Iterator[CompletionChoice]], prefix: str) -> list[CompletionItem[str]]:
    """Return the choices that begin with `prefix`; none if the configuration or the store can't be read.

    `list_choices`: called with `prefix`, so that it may skip others.
    """
    try:
        fitting = [
            (name, text)
            for name, text in list_choices(prefix)
            if name.startswith(prefix) and _PLAIN_NAME.fullmatch(name)
        ]
    # An error message would land in the middle of the line that the user is typing.
    except (CodeloopError, OSError):
        return []
    return [
        CompletionItem(name, help=one_line(text, 60) or None) for name, text in islice(fitting, COMPLETIONS_SHOWN.value)
    ]


def complete_sessions(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id or slug of a session of the project that is not archived."""
    return complete_from(_list_sessions, prefix)


def complete_archived_sessions(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id or slug of an archived session of the project."""
    return complete_from(lambda value: _list_sessions(value, archived=True), prefix)


def complete_grants(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id of an "always" grant of the project."""
    return complete_from(_list_grants, prefix)


def _list_grants(prefix: str) -> Iterator[CompletionChoice]:
    del prefix
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    with closing(open_queries(paths.get_project_folder(project_root.project_id) / "codeloop.db")) as queries:
        grants = queries.permissions.list_all_grants()
    for grant in grants:
        yield grant.id, f"{grant.permission} {', '.join(grant.patterns)}"


def _list_sessions(prefix: str, *, archived: bool = False) -> Iterator[CompletionChoice]:
    """Yield the ids of the project's sessions, newest first; the slugs when one is being typed."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    with closing(open_queries(paths.get_project_folder(project_root.project_id) / "codeloop.db")) as queries:
        # Practically all; the filter needs a number.
        sessions = queries.find_sessions(SessionFilter(limit=100_000))
    by_slug = bool(prefix) and not "ses_".startswith(prefix[:4])
    for session in sessions:
        # Sessions of subagents are only offered where an id is being typed.
        if bool(session.time.archived) == archived and (session.parent_id is None or prefix.startswith("ses_")):
            yield (session.slug if by_slug else session.id), session.title
