"""Connects to a directory of a running server over HTTP, for `--attach`,
`codeloop attach` and work trees there.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from codeloop.cli.option_values import Options
from codeloop.cli.questions.trust_prompt import TrustPrompt
from codeloop.client.connect import connect_to_server
from codeloop.client.http import HttpClient
from codeloop.client.packed_file import pack_file
from codeloop.client.target import Target
from codeloop.schema.api.config import CONFIG_WARNINGS
from codeloop.schema.api.project import PATH_GET
from codeloop.schema.errors import OperationError
from codeloop.schema.message import Session
from codeloop.schema.operation import NoArguments

UNENCRYPTED_WARNING = (
    "codeloop: The password is sent unencrypted, because the address is http. Use https."
)


@asynccontextmanager
async def open_remote(
    options: Options, _ask_trust: TrustPrompt | None = None
) -> AsyncGenerator[Target]:
    """Connect to the server of `--attach`; the directory is that of `--dir`,
    else the server's own.
    """
    client = connect_to_server(
        options.attach or "", options.directory, options.username, options.password
    )
    try:
        path_info = await client.call(PATH_GET, NoArguments())
        # The server's own spelling of the directory, with which those of sessions are compared.
        client = client.for_directory(path_info.directory)
        notes = [UNENCRYPTED_WARNING] if client.sends_in_clear else []
        # A server of another version may lack this operation.
        with suppress(OperationError):
            notes += [
                f"codeloop: {line}" for line in await client.call(CONFIG_WARNINGS, NoArguments())
            ]

        def get_session_client(session: Session) -> HttpClient:
            return (
                client
                if session.directory == client.directory
                else client.for_directory(session.directory)
            )

        yield Target(
            client=client,
            directory=path_info.directory,
            get_session_client=get_session_client,
            attach_file=pack_file,
            notes=tuple(notes),
            connection=client.connection,
            get_directory_client=client.for_directory,
        )
    finally:
        await client.close()
