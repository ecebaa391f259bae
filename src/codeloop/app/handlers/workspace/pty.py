"""Handlers of terminals (PTYs) that clients open in the project.
Their bytes go over `server.pty_socket`.
"""

from codeloop.app.project import Project
from codeloop.schema.api.pty import CreatePty, PtyId, PtyShell, PtyTicketConnectToken, UpdatePty
from codeloop.schema.bounds.server import PTY_TICKET, PTY_TITLE
from codeloop.schema.errors import OperationError
from codeloop.schema.live_events import PtyCreated, PtyDeleted, PtyExited, PtyUpdated
from codeloop.schema.operation import NoArguments
from codeloop.schema.resources import Pty, PtyEnd, PtyGone, PtyInfo
from codeloop.workspace.terminal.shell_choice import choose_program, list_shells
from codeloop.workspace.terminal.terminals import Terminal


async def list_installed_shells(project: Project, _args: NoArguments) -> list[PtyShell]:
    """Return the shells that are installed."""
    return list_shells(project.workspace.environment)


async def list_terminals(project: Project, _args: NoArguments) -> list[Pty]:
    """Return every terminal, the oldest first."""
    return [terminal.info for terminal in project.workspace.terminals.list_terminals()]


async def create_terminal(project: Project, args: CreatePty) -> Pty:
    """Open a terminal. It is the user's own, in no sandbox;
    but none is opened where a required one can't be had.

    Raises OperationError, also if its directory or program does not exist, or too many are open.
    """

    def announce_exit(terminal: Terminal, code: int) -> None:
        project.publish_live(PtyExited(properties=PtyEnd(id=terminal.id, exit_code=code)))

    _check_title(args.title)
    workspace = project.workspace
    try:
        if workspace.sandbox.mode == "required":
            await workspace.program_sandboxes.enter_command_sandbox()
        program = choose_program(args, workspace.directory, await _make_environment(project, args))
        terminal = await project.workspace.terminals.open(program, announce_exit)
    except (OSError, ValueError) as error:
        reason = str((isinstance(error, OSError) and error.strerror) or error).rstrip(".")
        raise OperationError("BadRequest", f"The terminal can't be opened: {reason}.") from error
    terminal.title = args.title or terminal.title
    project.publish_live(PtyCreated(properties=PtyInfo(info=terminal.info)))
    return terminal.info


async def _make_environment(project: Project, args: CreatePty) -> dict[str, str]:
    """Return the variables of a terminal's program: the project's,
    and those that extensions set.
    """
    cwd = args.cwd or str(project.workspace.directory)
    return {
        **project.workspace.environment,
        **await project.engine.hooks.collect_shell_variables({"cwd": cwd}),
    }


async def get_terminal(project: Project, args: PtyId) -> Pty:
    """Return one terminal."""
    return find_terminal(project, args.pty_id).info


async def update_terminal(project: Project, args: UpdatePty) -> Pty:
    """Rename or resize a terminal."""
    _check_title(args.title)
    terminal = find_terminal(project, args.pty_id)
    terminal.title = args.title or terminal.title
    if args.size is not None:
        terminal.resize(args.size.rows, args.size.cols)
    project.publish_live(PtyUpdated(properties=PtyInfo(info=terminal.info)))
    return terminal.info


async def remove_terminal(project: Project, args: PtyId) -> bool:
    """Close a terminal, and end all programs that run in it."""
    terminal = find_terminal(project, args.pty_id)
    await project.workspace.terminals.remove(terminal.id)
    project.publish_live(PtyDeleted(properties=PtyGone(id=terminal.id)))
    return True


async def make_ticket(project: Project, args: PtyId) -> PtyTicketConnectToken:
    """Return a ticket for one connection to the terminal.

    A browser can't send the credential with a WebSocket,
    so the ticket stands in for it in the address.
    """
    terminal = find_terminal(project, args.pty_id)
    return PtyTicketConnectToken(
        ticket=project.workspace.terminals.tickets.issue(terminal.id),
        expires_in=int(PTY_TICKET.seconds),
    )


def find_terminal(project: Project, pty_id: str) -> Terminal:
    """Return a running terminal. Raises OperationError when there is no such terminal."""
    terminal = project.workspace.terminals.get(pty_id)
    if terminal is None:
        raise OperationError(
            "PtyNotFoundError", f"There is no terminal {pty_id}; it may have ended."
        )
    return terminal


def _check_title(title: str | None) -> None:
    if title is not None and len(title) > PTY_TITLE.value:
        raise OperationError(
            "BadRequest", f"The title is longer than {PTY_TITLE.value} characters."
        )
