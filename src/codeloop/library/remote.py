"""Connects to a project on a server, as the command line does with `--attach`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from codeloop.client.connect import connect_to_server
from codeloop.client.packed_file import pack_file
from codeloop.client.target import Target
from codeloop.library.options import ConnectOptions
from codeloop.schema.api.config import CONFIG_WARNINGS
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.errors import OperationError
from codeloop.schema.operation import NoArguments


@asynccontextmanager
async def open_remote_target(url: str, options: ConnectOptions) -> AsyncGenerator[Target]:
    """Connect to a server while the block runs. Raises CodeloopError."""
    directory = options.get("directory")
    path = Path(directory) if directory is not None else None
    client = connect_to_server(url, path, options.get("username"), options.get("password"))
    try:
        path_info = await client.call(PATH_GET, NoArguments())
        # The server's own spelling of the directory.
        directory_client = client.for_directory(path_info.directory)
        warnings: tuple[str, ...] = ()
        # A server of another version may not have this operation.
        with suppress(OperationError):
            warnings = tuple(await directory_client.call(CONFIG_WARNINGS, NoArguments()))
        if client.sends_in_clear:
            warnings = (
                "The password is sent unencrypted, because the address is http. Use https.",
                *warnings,
            )
        yield Target(
            client=directory_client,
            directory=path_info.directory,
            get_session_client=lambda _: directory_client,
            attach_file=pack_file,
            notes=warnings,
            connection=client.connection,
        )
    finally:
        await client.close()
