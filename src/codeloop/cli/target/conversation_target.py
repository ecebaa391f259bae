"""Opens a project in this process for a conversation, during which its configuration may change."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from pathlib import Path

from codeloop.app.app import App
from codeloop.app.extensions.open_with_extensions import (
    carry_over_warnings,
    wait_for_config_changes,
)
from codeloop.cli.option_values import Options
from codeloop.cli.questions.trust_prompt import TrustPrompt
from codeloop.cli.target.local import ask_about_trust, make_local_target, make_startup, open_local
from codeloop.cli.target.process_log import open_log
from codeloop.client.directory_client import DirectoryClient
from codeloop.client.target import Target


def open_conversation(
    options: Options, ask_trust: TrustPrompt | None = None
) -> AbstractAsyncContextManager[Target]:
    """Open the project of `--dir`. `ask_trust`: asks the user whether to trust it;
    None: nobody can be asked.
    """
    # A recording belongs to one project from the beginning to the end,
    # so a changed configuration must not reopen it.
    if options.record or options.replay:
        return open_local(options, ask_trust)
    return _open_reloadable(options, ask_trust)


@asynccontextmanager
async def _open_reloadable(
    options: Options, ask_trust: TrustPrompt | None
) -> AsyncGenerator[Target]:
    startup = make_startup(options, None)
    with open_log(options):
        if ask_trust is not None:
            await ask_about_trust(startup, ask_trust)
        # An idle project would be closed, and forget which files the model has read.
        app = App(startup, idle_seconds=inf)
        try:
            directory = app.resolve_directory(None)
            # Extensions may change the configuration, which opens the project anew.
            project = await app.get_project(directory)
            if await wait_for_config_changes(project):
                project = carry_over_warnings(await app.get_project(directory), project)
            yield make_local_target(
                DirectoryClient(app, directory),
                project,
                options,
                get_directory_client=lambda name: DirectoryClient(app, Path(name).resolve()),
            )
        finally:
            await app.close()
