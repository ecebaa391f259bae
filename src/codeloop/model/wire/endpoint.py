"""A model service's endpoint: address, key, headers, timeouts."""

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.model.origin import displayable_url
from codeloop.schema.limits import MODEL_CONNECT, MODEL_FIRST_BYTE, MODEL_IDLE

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import Signer

KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
"""Headers that carry a key, in lower case."""


class Hints(Protocol):
    """Hints for fixing a refused request, without any key."""

    def key(self) -> str:
        """Return where the key comes from and how to change it, in sentences."""
        ...

    def account(self) -> str:
        """Return where the key comes from, as ` The key comes from ...`; empty when there is none."""
        ...

    def url(self) -> str:
        """Return the setting that holds the base URL."""
        ...

    async def suggest_models(self) -> str:
        """Return models with similar names, as ` Did you mean ...?`, for a request whose model does not exist."""
        ...


class Endpoint(Struct, frozen=True):
    """A service: base URL (no trailing slash), key, extra headers, deadlines in seconds."""

    base_url: str
    key: str | None = None
    headers: dict[str, str] = struct_field(default_factory=dict[str, str])
    connect: float = MODEL_CONNECT.seconds
    first_byte: float = MODEL_FIRST_BYTE.seconds
    idle: float = MODEL_IDLE.seconds
    hints: Hints | None = None
    signer: "Signer | None" = None
    """Authorises each request where no fixed key does."""
    client: Any = None
    """A `RequestClient` that sends the requests instead of a connection of ours: a plugin's.

    Its type is in `net.client`, which is not loaded before a request is sent.
    """

    def __repr__(self) -> str:
        """Return the URL only, since the headers may hold a key."""
        return f"Endpoint({displayable_url(self.base_url)!r})"
