"""The operations of `find`.

Written by scripts/generate_client.py; not to be edited.
"""

from msgspec.structs import asdict

from codeloop.client.client import Client
from codeloop.schema.files import FindFiles, FindSymbols, FindText, FoundLine, Symbol
from codeloop.schema.operation import FIND_FILES, FIND_SYMBOLS, FIND_TEXT


async def text(client: Client, args: FindText) -> list[FoundLine]:
    """GET /find.

    Looks for a regular expression in files.
    """
    return await client.call(FIND_TEXT, **asdict(args))


async def files(client: Client, args: FindFiles) -> list[str]:
    """GET /find/file."""
    return await client.call(FIND_FILES, **asdict(args))


async def symbols(client: Client, args: FindSymbols) -> list[Symbol]:
    """GET /find/symbol.

    Looks for symbols.
    """
    return await client.call(FIND_SYMBOLS, **asdict(args))
