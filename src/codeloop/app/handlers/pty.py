"""Terminals."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.pty import CreatePty, OfOnePty, Pty, PtyShell, PtyTicket, UpdatePty


async def shells(project: Project, args: NoArguments) -> list[PtyShell]:
    """pty.shells."""
    raise NotImplementedError


async def listed(project: Project, args: NoArguments) -> list[Pty]:
    """pty.list."""
    raise NotImplementedError


async def create(project: Project, args: CreatePty) -> Pty:
    """pty.create."""
    raise NotImplementedError


async def get(project: Project, args: OfOnePty) -> Pty:
    """pty.get."""
    raise NotImplementedError


async def update(project: Project, args: UpdatePty) -> Pty:
    """pty.update."""
    raise NotImplementedError


async def remove(project: Project, args: OfOnePty) -> bool:
    """pty.remove."""
    raise NotImplementedError


async def ticket(project: Project, args: OfOnePty) -> PtyTicket:
    """pty.connectToken."""
    raise NotImplementedError
