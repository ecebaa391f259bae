"""Where a model's service is, and how long to wait for it."""

from dataclasses import dataclass, field

from codeloop.schema.limits import MODEL_CONNECT, MODEL_FIRST_BYTE, MODEL_IDLE


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service: base URL (no trailing slash), key, extra headers, deadlines in seconds."""

    base_url: str
    key: str | None = field(default=None, repr=False)
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    connect: float = MODEL_CONNECT.seconds
    first_byte: float = MODEL_FIRST_BYTE.seconds
    idle: float = MODEL_IDLE.seconds
