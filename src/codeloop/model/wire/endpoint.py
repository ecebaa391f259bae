"""The endpoint of a model's service (address, key, headers, deadlines),
and the interface of hints for its users.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec import field as struct_field

from codeloop.model.base_url import redact_url
from codeloop.schema.limits import MODEL_CONNECT, MODEL_FIRST_BYTE, MODEL_IDLE

if TYPE_CHECKING:
    from codeloop.model.credentials.signer import Signer

# OpenAI and most others, Anthropic, Azure, Google.
KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "x-goog-api-key"})
"""Headers that carry a key, in lower case."""


class RefusalHints(Protocol):
    """Hints for fixing a refused request, without any key."""

    def describe_key(self) -> str:
        """Return where the key comes from and how to change it, in sentences."""
        ...

    def describe_key_source(self) -> str:
        """Return where the key comes from, as the sentence ` The key comes from ...`;
        empty when there is none.
        """
        ...

    def describe_url_setting(self) -> str:
        """Return the setting that holds the base URL."""
        ...

    async def suggest_models(self) -> str:
        """Return models with similar names, as ` Did you mean ...?`,
        for a request whose model does not exist.
        """
        ...


class Endpoint(Struct, frozen=True):
    """A service: base URL (no trailing slash), key, extra headers, deadlines in seconds."""

    base_url: str
    key: str | None = None
    headers: dict[str, str] = struct_field(default_factory=dict[str, str])
    connect: float = MODEL_CONNECT.seconds
    first_byte: float = MODEL_FIRST_BYTE.seconds
    idle: float = MODEL_IDLE.seconds
    hints: RefusalHints | None = None
    signer: "Signer | None" = None
    """Authorises each request where no fixed key does."""
    known_refusals: Path | None = None
    """The file of the optional fields that services are known to refuse;
    None: it is found out again in each process.
    """
    client: Any = None
    """A `RequestClient` that sends the requests instead of a connection of ours: a plugin's.

    Its type is in `net.client`, which is not loaded before a request is sent.
    """

    def __repr__(self) -> str:
        """Return the URL only, since the headers may hold a key."""
        return f"Endpoint({redact_url(self.base_url)!r})"
