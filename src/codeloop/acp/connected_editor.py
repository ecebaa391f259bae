"""`ConnectedEditor`: the connection to an editor, with what was agreed on in `initialize`."""

from collections.abc import Set as AbstractSet

from msgspec import Struct

from codeloop.acp.connection import EditorConnection
from codeloop.acp.params import ClientCapabilities
from codeloop.acp.versions.version import ProtocolVersion


class ConnectedEditor(Struct, frozen=True):
    """The connection to an editor, its protocol version and its capabilities.

    `terminal_ids`: the ids of the editor's own terminals in which commands run;
    the set grows with each command.
    """

    connection: EditorConnection
    version: ProtocolVersion
    capabilities: ClientCapabilities
    terminal_ids: AbstractSet[str] = frozenset()
