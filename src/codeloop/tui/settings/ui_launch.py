"""`UiLaunch`: the start parameters of the terminal UI, such as how to reach a project,
and where the settings are.
"""

import hashlib
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from msgspec import Struct

from codeloop.client.client import Client
from codeloop.client.target import Target
from codeloop.schema.message import ModelRef, Session

AskUser = Callable[[str], Awaitable[bool]]
"""Asks the user a question, and returns whether the answer is yes."""
AskTrust = Callable[[str], Awaitable[bool]]
"""Shows why a project needs trust, and returns whether the user trusts it."""


class UiLaunch(Struct, kw_only=True):
    """The start parameters.

    `open_project` opens the project or the connection, asking for trust if that is needed; it
    raises CodeloopError. `choose_session` returns the session to resume, or None for a new one;
    `create_session` creates a session.
    `prompt`: the first prompt to send. `command`: the command line that resumes a session, but for
    the session's id; "": there is none.
    """

    open_project: Callable[[AskTrust], AbstractAsyncContextManager[Target]]
    choose_session: Callable[[Target], Awaitable[Session | None]]
    create_session: Callable[[Client], Awaitable[Session]]
    directory: str
    """The directory that the UI shows before the project is open."""
    state_folder: Path
    """The folder of the user's choices; the project's drafts and history are in
    `prompt_folder` below it.
    """
    settings_files: tuple[Path, ...] = ()
    """The files of the UI's settings; a later one takes precedence."""
    own_settings: Path | None = None
    """The one of `settings_files` that the UI writes to; None: settings can't be changed."""
    theme_folders: tuple[Path, ...] = ()
    ask: AskUser | None = None
    """Asks the user a question of `choose_session`; set once there is a screen for it."""
    prompt: str = ""
    agent: str | None = None
    model: ModelRef | None = None
    """The model that was named at the start; set when the project is open,
    since a short name is resolved then.
    """
    variant: str | None = None
    """How much the model thinks; None: as it was chosen before."""
    thinking: bool | None = None
    """Whether the model's thinking is shown; None: as the settings say."""
    server: str = ""
    """The address of the server; "": the project is opened in this process."""
    command: str = "codeloop --session"
    find_other_agents: Callable[[], dict[str, str]] = dict
    """Returns the agents that `codeloop import --from` can take from here, with their names."""

    @property
    def prompt_folder(self) -> Path:
        """The folder of the directory's drafts and history,
        so that other projects' prompts are not offered here.
        """
        # A hash, since a path contains slashes, and may be longer than the name of a folder.
        key = f"{self.server}\n{os.path.realpath(self.directory)}"
        return self.state_folder / "projects" / hashlib.sha256(os.fsencode(key)).hexdigest()[:16]
