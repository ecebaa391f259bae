"""The error of a request that failed below HTTP."""

from typing import Literal

NetworkErrorKind = Literal[
    "connect",
    "refused",
    "connect-timeout",
    "certificate",
    "proxy",
    "offline",
    "first-byte",
    "idle",
    "cut",
    "protocol",
]
"""Where it failed.

`refused`: nothing listens at the address, or its name is not known;
`connect`: no connection for another reason;
`connect-timeout`: none in time; `certificate`: one is not trusted, or a configured file of one
can't be used; `proxy`: the proxy, or the way to it; `offline`: not sent in offline mode;
`first-byte`: no answer began in time; `idle`: the answer stalled; `cut`: the connection ended
before the answer; `protocol`: what came is not HTTP, or is damaged.
"""


class NetworkError(Exception):
    """A request failed below HTTP: `kind` says where;
    the text is the reason, "" where the kind says it all.
    """

    def __init__(self, kind: NetworkErrorKind, detail: str = "") -> None:
        super().__init__(detail)
        self.kind: NetworkErrorKind = kind
