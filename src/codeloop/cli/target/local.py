"""Opens a project in this process, for `run`, `mcp serve` and recorded conversations,
and makes `Target`s.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from codeloop.app.extensions.open_with_extensions import open_with_extensions
from codeloop.app.project import Project
from codeloop.app.prompt_parts import make_local_file_part
from codeloop.app.settings import ProjectSettings, Startup, check_directory, find_settings
from codeloop.cli.option_values import Options
from codeloop.cli.questions.trust_prompt import TrustPrompt
from codeloop.cli.target.process_log import apply_configured_level, open_log
from codeloop.client.client import Client
from codeloop.client.local import LocalClient
from codeloop.client.target import Target, refuse_directory
from codeloop.config.trust.store import read_present_contents, trust_directory
from codeloop.kit.text.undecodable import find_undecodable
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.message import Session

if TYPE_CHECKING:
    from codeloop.model.testing.recording_file import RecordingFile


@asynccontextmanager
async def open_local(
    options: Options, ask_trust: TrustPrompt | None = None
) -> AsyncGenerator[Target]:
    """Open the project of `--dir`. `ask_trust`: asks the user whether to trust it;
    None: nobody can be asked.
    """
    with open_log(options), _open_recording(options) as record_file:
        startup = make_startup(options, record_file.path if record_file is not None else None)
        startup_or_settings = (
            await ask_about_trust(startup, ask_trust) if ask_trust is not None else startup
        )
        project = await open_with_extensions(startup_or_settings)
        try:
            yield make_local_target(LocalClient(project), project, options)
        finally:
            await project.close()
            if record_file is not None:
                record_file.is_whole = not project.models.list_problems()


def make_local_target(
    client: Client,
    project: Project,
    options: Options,
    get_directory_client: Callable[[str], Client] | None = None,
) -> Target:
    """Make the `Target` of a project in this process.

    `get_directory_client`: returns the client of another work tree of the repository, whose
    sessions can then be opened, too; None: only those of the project's own directory.
    """
    notes = tuple(f"codeloop: {warning}" for warning in project.settings.loaded.warnings)
    project.refresh_catalog()
    apply_configured_level(options, project.settings.config.log_level)
    project_root = project.settings.project_root

    def get_session_client(session: Session) -> Client:
        # A fork is a new session of this directory.
        if session.root == project_root.root_name or options.fork:
            return client
        is_ours = project_root.vcs == "git" and session.project_id == project_root.project_id
        if (
            get_directory_client is not None
            and is_ours
            and Path(find_undecodable(session.directory)).is_dir()
        ):
            return get_directory_client(session.directory)
        way = "Go there (--dir), or resume a copy here (--fork)."
        if not Path(session.root).is_dir():
            # Imported late: it is rarely needed.
            from shlex import quote

            way = (
                f"That folder is gone. If it is this one now: codeloop session adopt {quote(session.root)}; "
                "or resume a copy here (--fork)."
            )
        raise UsageProblem(
            f"Session {session.id} belongs to {session.directory}, not to {project_root.directory_name}. {way}"
        )

    return Target(
        client=client,
        directory=project_root.directory_name,
        get_session_client=get_session_client,
        attach_file=make_local_file_part,
        notes=notes,
        list_problems=project.models.list_problems,
        get_directory_client=get_directory_client or refuse_directory,
    )


def _open_recording(options: Options) -> "AbstractContextManager[RecordingFile | None]":
    if options.record is None:
        return nullcontext()
    from codeloop.model.testing.recording_file import open_recording

    return open_recording(options.record, replace=options.force)


def make_startup(options: Options, record: Path | None) -> Startup:
    """Make the `Startup` of a project from the options.
    Raises UsageProblem if there is no such directory.
    """
    directory = options.directory or Path()
    check_directory(directory, "--dir")
    return Startup(
        directory=directory,
        config_file=options.config,
        # A short name is resolved once the project is open.
        settings={"model": options.model} if options.model and "/" in options.model else {},
        trust=options.trust,
        record=record,
        replay=options.replay,
        pace=options.pace,
    )


async def ask_about_trust(startup: Startup, ask_trust: TrustPrompt) -> ProjectSettings:
    """Ask whether to trust the directory, if its configuration needs that, and store a yes.

    Returns the settings to open it with.
    """
    settings = find_settings(startup)
    if settings.trusted or not (settings.loaded.ignored or settings.distrust):
        return settings
    root, directory = settings.project_root.root, settings.project_root.directory
    shown, changes = None, ()
    # What can't be compared can't be trusted either: that is said after a yes, as before.
    with suppress(CodeloopError):
        # What is shown is what is trusted, whatever the files are when the answer comes.
        shown = read_present_contents(settings.paths, root.resolve(), directory)
    if settings.distrust is not None:
        # Imported late: most projects have not changed since they were trusted.
        from codeloop.config.trust.changes import list_trust_changes

        changes = list_trust_changes(settings.paths, root, directory, shown)
    # A yes is stored; a no is not, so it is asked again next time.
    if not await ask_trust(settings, changes):
        return settings
    trust_directory(settings.paths, root, directory, shown)
    return find_settings(startup)
