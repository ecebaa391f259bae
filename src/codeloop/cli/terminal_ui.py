"""Starts the terminal UI from the command line's options,
on a project of this process or on a server.
"""

import gc
import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from codeloop.app.settings import ProjectSettings
from codeloop.cli.option_values import Options
from codeloop.cli.target.open_target import choose_open_target
from codeloop.cli.target.selection import (
    check_agent,
    check_model,
    choose_session,
    parse_model,
    prepare_session,
    resolve_model,
)
from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.config.paths import Paths, find_paths
from codeloop.config.trust.store import TrustChange
from codeloop.schema.message import Session
from codeloop.tui.settings.ui_launch import AskTrust, UiLaunch


def show_terminal_ui(options: Options) -> int:
    """Show the terminal UI until the user leaves; return the exit code.
    Raises CodeloopError if it can't begin.
    """
    # The objects made until the project is open stay alive, so collecting garbage would only delay
    # the first screen. The terminal UI enables it again once the project is open.
    gc.disable()
    paths = find_paths(os.environ)
    directory = (options.directory or Path()).absolute()

    def open_ui_target(ask_trust: AskTrust) -> AbstractAsyncContextManager[Target]:
        async def ask_about_settings(
            settings: ProjectSettings, changes: Sequence[TrustChange]
        ) -> bool:
            from codeloop.cli.questions.trust_text import format_trust_question

            return await ask_trust(format_trust_question(settings, changes, colour=False))

        return choose_open_target(options, is_conversation=True)(options, ask_about_settings)

    async def choose_and_prepare(target: Target) -> Session | None:
        session = await choose_session(target, options, launch.ask)
        client = target.client if session is None else target.get_session_client(session)
        await check_agent(client, options.agent)
        name = await resolve_model(client, options.model)
        await check_model(client, name)
        launch.model = parse_model(name)
        return None if session is None else await prepare_session(client, options, session)

    async def create_session(client: Client) -> Session:
        return await prepare_session(client, options, None)

    # In rising order: the settings and themes of a later folder override those of an earlier one.
    folders = [
        paths.opencode_config,
        paths.config,
        directory / ".opencode",
        directory / ".codeloop",
    ]
    # The libraries of the terminal UI are loaded last: only errors above need no screen.
    from codeloop.tui.start import run_terminal_ui

    launch = UiLaunch(
        open_project=open_ui_target,
        choose_session=choose_and_prepare,
        create_session=create_session,
        directory=str(directory),
        state_folder=paths.state / "tui",
        settings_files=tuple(folder / "tui.json" for folder in folders),
        own_settings=paths.config / "tui.json",
        theme_folders=tuple(folder / "themes" for folder in folders),
        prompt=" ".join(options.message).strip(),
        agent=options.agent,
        variant=options.variant,
        thinking=options.thinking or None,
        server=options.attach or "",
        command=_format_resume_command(options),
        find_other_agents=partial(_find_other_agents, paths),
    )
    return run_terminal_ui(launch)


def _find_other_agents(paths: Paths) -> dict[str, str]:
    # Imported late: it is asked for once.
    from codeloop.app.switch.foreign_home import list_homes

    return {**list_homes(paths)}


def _format_resume_command(options: Options) -> str:
    # A session that was answered from a recording is not offered for resuming.
    if options.replay is not None:
        return ""
    return f"codeloop attach {options.attach} --session" if options.attach else "codeloop --session"
