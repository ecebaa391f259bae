"""Completes names of agents, commands and models in shells, from the configuration of the current directory."""

from collections.abc import Iterator
from pathlib import Path

from click.shell_completion import CompletionItem

from codeloop.app.settings import Startup, find_settings, make_providers
from codeloop.cli.completion.sessions import CompletionChoice, complete_from
from codeloop.extend.commands import build_commands
from codeloop.extend.rulebook import Rulebook


def complete_agents(prefix: str) -> list[CompletionItem[str]]:
    """Complete the name of an agent that is not hidden."""
    return complete_from(_list_agents, prefix)


def complete_commands(prefix: str) -> list[CompletionItem[str]]:
    """Complete the name of a command of the configuration."""
    return complete_from(_list_commands, prefix)


def complete_models(prefix: str) -> list[CompletionItem[str]]:
    """Complete `PROVIDER/MODEL`, for the providers that have a key."""
    return complete_from(_list_models, prefix)


def _list_agents(prefix: str) -> Iterator[CompletionChoice]:
    del prefix
    settings = find_settings(Startup(directory=Path.cwd()))
    scratch = settings.project_root.get_scratch_folder(
        settings.paths.get_project_folder(settings.project_root.project_id)
    )
    for name, agent in sorted(Rulebook(settings.loaded, scratch, settings.skills.readable).build_agents().items()):
        if not agent.hidden:
            yield name, agent.description or ""


def _list_commands(prefix: str) -> Iterator[CompletionChoice]:
    del prefix
    settings = find_settings(Startup(directory=Path.cwd()))
    for name, command in sorted(build_commands(settings.config, settings.skills).items()):
        yield name, command.description or ""


def _list_models(prefix: str) -> Iterator[CompletionChoice]:
    """Yield the models of each provider that has a key and fits what is typed."""
    providers = make_providers(find_settings(Startup(directory=Path.cwd())))
    for usable in providers.list_usable():
        start = f"{usable.provider.id}/"
        if start.startswith(prefix) or prefix.startswith(start):
            for name, info in sorted(providers.list_models(usable.provider.id).items()):
                yield start + name, info.name
