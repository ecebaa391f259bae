"""Searches."""

from codeloop.app.project import Project
from codeloop.schema.files import FindFiles, FindSymbols, FindText, FoundFiles, FoundLine, Symbol


async def text(project: Project, args: FindText) -> list[FoundLine]:
    """find.text."""
    raise NotImplementedError


async def files(project: Project, args: FindFiles) -> list[str]:
    """find.files."""
    raise NotImplementedError


async def symbols(project: Project, args: FindSymbols) -> list[Symbol]:
    """find.symbols."""
    raise NotImplementedError


async def fs_find(project: Project, args: FindFiles) -> FoundFiles:
    """v2.fs.find."""
    raise NotImplementedError
