"""Completes ids and names in shells: of sessions, grants, agents, commands and models.

`cli/commands/completion.py` prints the scripts with which shells ask for them.

The user waits for them after pressing Tab. So ids are read from the store without opening the
project, and settings and models are loaded only by the functions that need them.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from click.shell_completion import CompletionItem

from codeloop.config.paths import find_paths
from codeloop.config.project_root import find_project_root
from codeloop.kit.text.terminal_text import one_line
from codeloop.schema.errors import CodeloopError
from codeloop.schema.limits import COMPLETIONS_SHOWN
from codeloop.store.queries import Queries, SessionFilter, open_queries


class CompletableValue(NamedTuple):
    """A value that can be completed, and its description."""

    value: str
    description: str


# What every shell reads as one plain word. A project may choose names with `$(...)` or `;` in them,
# which Tab must not put on the command line.
_PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9_./:@+-]*"


def _complete(
    list_choices: Callable[[str], Iterator[CompletableValue]], prefix: str
) -> list[CompletionItem[str]]:
    """Return the choices that begin with `prefix`;
    none if the configuration or the store can't be read.

    `list_choices`: called with `prefix`, so that it may skip others.
    """
    try:
        choices = [
            choice
            for choice in list_choices(prefix)
            if choice.value.startswith(prefix) and re.fullmatch(_PLAIN_NAME, choice.value)
        ]
    # An error message would land in the middle of the line that the user is typing.
    except (CodeloopError, OSError):
        return []
    return [
        CompletionItem(choice.value, help=one_line(choice.description, 60) or None)
        for choice in choices[: COMPLETIONS_SHOWN.value]
    ]


def complete_sessions(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id or slug of a session of the project that is not archived."""
    return _complete(_list_sessions, prefix)


def complete_archived_sessions(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id or slug of an archived session of the project."""
    return _complete(lambda value: _list_sessions(value, archived=True), prefix)


def complete_grants(prefix: str) -> list[CompletionItem[str]]:
    """Complete the id of an "always" grant of the project."""
    return _complete(_list_grants, prefix)


def complete_agents(prefix: str) -> list[CompletionItem[str]]:
    """Complete the name of an agent that is not hidden."""
    return _complete(_list_agents, prefix)


def complete_commands(prefix: str) -> list[CompletionItem[str]]:
    """Complete the name of a command: a built-in one, one of the configuration, or a skill."""
    return _complete(_list_commands, prefix)


def complete_models(prefix: str) -> list[CompletionItem[str]]:
    """Complete `PROVIDER/MODEL`, for the providers that can be used."""
    return _complete(_list_models, prefix)


def _open_project_queries() -> Queries:
    """Open the store of the current directory's project for reading."""
    paths = find_paths(os.environ)
    project_root = find_project_root(Path.cwd(), paths, os.environ)
    return open_queries(paths.get_project_folder(project_root.project_id) / "codeloop.db")


def _list_grants(_prefix: str) -> Iterator[CompletableValue]:
    with closing(_open_project_queries()) as queries:
        grants = queries.permissions.list_all_grants()
    for grant in grants:
        yield CompletableValue(grant.id, f"{grant.permission} {', '.join(grant.patterns)}")


def _list_sessions(prefix: str, *, archived: bool = False) -> Iterator[CompletableValue]:
    """Yield the ids of the project's sessions, newest change first;
    the slugs when one is being typed.
    """
    with closing(_open_project_queries()) as queries:
        # Practically all; the filter needs a number.
        sessions = queries.find_sessions(SessionFilter(limit=100_000))
    # An id begins with `ses_`; anything else that is typed is the beginning of a slug.
    by_slug = bool(prefix) and not "ses_".startswith(prefix[:4])
    for session in sessions:
        # Sessions of subagents are only offered where an id is being typed.
        if bool(session.time.archived) == archived and (
            session.parent_id is None or prefix.startswith("ses_")
        ):
            yield CompletableValue(session.slug if by_slug else session.id, session.title)


def _list_agents(_prefix: str) -> Iterator[CompletableValue]:
    from codeloop.app.settings import Startup, find_settings
    from codeloop.extend.rulebook import Rulebook

    settings = find_settings(Startup(directory=Path.cwd()))
    scratch = settings.project_root.get_scratch_folder(settings.home)
    for name, agent in sorted(
        Rulebook(settings.loaded, scratch, settings.skills.readable).build_agents().items()
    ):
        if not agent.hidden:
            yield CompletableValue(name, agent.description or "")


def _list_commands(_prefix: str) -> Iterator[CompletableValue]:
    from codeloop.app.settings import Startup, find_settings
    from codeloop.extend.commands import build_commands

    settings = find_settings(Startup(directory=Path.cwd()))
    for name, command in sorted(build_commands(settings.config, settings.skills).items()):
        yield CompletableValue(name, command.description or "")


def _list_models(prefix: str) -> Iterator[CompletableValue]:
    """Yield the models of each provider that can be used and fits what is typed."""
    from codeloop.app.models.open_models import make_providers
    from codeloop.app.settings import Startup, find_settings

    providers = make_providers(find_settings(Startup(directory=Path.cwd())))
    for usable in providers.list_usable():
        start = f"{usable.provider.id}/"
        if start.startswith(prefix) or prefix.startswith(start):
            for name, info in sorted(providers.list_models(usable.provider.id).items()):
                yield CompletableValue(start + name, info.name)
