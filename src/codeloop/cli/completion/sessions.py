"""Sessions as a shell completes them: read from the store, without opening the project."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from click.shell_completion import CompletionItem

from codeloop.cli.completion.choices import Choice, begun
from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.store.queries import SessionFilter, open_queries


def current(typed: str) -> list[CompletionItem[str]]:
    """Return the project's sessions that are not archived."""
    return begun(_sessions, typed)


def archived(typed: str) -> list[CompletionItem[str]]:
    """Return the project's archived sessions."""
    return begun(lambda typed: _sessions(typed, archived=True), typed)


def _sessions(typed: str, *, archived: bool = False) -> Iterator[Choice]:
    """Yield the ids of the project's sessions, newest first; the slugs when one is being typed."""
    paths = find_paths(os.environ)
    place = find_project_root(Path.cwd(), paths, os.environ)
    with closing(open_queries(paths.project(place.project_id) / "codeloop.db")) as queries:
        found = queries.sessions(SessionFilter(limit=100_000))
    by_slug = bool(typed) and not "ses_".startswith(typed[:4])
    for each in found:
        if bool(each.time.archived) == archived and (each.parent_id is None or typed.startswith("ses_")):
            yield (each.slug if by_slug else each.id), each.title
