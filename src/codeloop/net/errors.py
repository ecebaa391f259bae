"""The error of a request that failed below HTTP."""

from typing import Literal

NetworkErrorKind = Literal[
    "connect", "refused", "connect-timeout", "certificate", "proxy", "offline", "first-byte", "idle", "cut", "protocol"
]
"""`first-byte`: no answer began in time; `idle`: it stalled; `cut`: the connection ended; `protocol`: no HTTP."""


class NetworkError(Exception):
    """A request failed below HTTP: `kind` says where; the text is the system's own reason."""

    def __init__(self, kind: NetworkErrorKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind: NetworkErrorKind = kind
