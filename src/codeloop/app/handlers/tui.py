"""What a client has an attached terminal UI do."""

from codeloop.app.project import Project
from codeloop.schema.operation import NoArguments
from codeloop.schema.sessions import OfOneSession
from codeloop.schema.tui import AppendPrompt, ExecuteCommand, PublishTui, ShowToast


async def append_prompt(project: Project, args: AppendPrompt) -> bool:
    """tui.appendPrompt."""
    raise NotImplementedError


async def submit_prompt(project: Project, args: NoArguments) -> bool:
    """tui.submitPrompt."""
    raise NotImplementedError


async def clear_prompt(project: Project, args: NoArguments) -> bool:
    """tui.clearPrompt."""
    raise NotImplementedError


async def open_help(project: Project, args: NoArguments) -> bool:
    """tui.openHelp."""
    raise NotImplementedError


async def open_sessions(project: Project, args: NoArguments) -> bool:
    """tui.openSessions."""
    raise NotImplementedError


async def open_themes(project: Project, args: NoArguments) -> bool:
    """tui.openThemes."""
    raise NotImplementedError


async def open_models(project: Project, args: NoArguments) -> bool:
    """tui.openModels."""
    raise NotImplementedError


async def execute(project: Project, args: ExecuteCommand) -> bool:
    """tui.executeCommand."""
    raise NotImplementedError


async def toast(project: Project, args: ShowToast) -> bool:
    """tui.showToast."""
    raise NotImplementedError


async def publish(project: Project, args: PublishTui) -> bool:
    """tui.publish."""
    raise NotImplementedError


async def select(project: Project, args: OfOneSession) -> bool:
    """tui.selectSession."""
    raise NotImplementedError
