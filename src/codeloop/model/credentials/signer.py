"""The interface of what authorises requests (`Signer`): keys of programs and keyrings, sign-ins,
cloud credentials.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


class Signer(Protocol):
    """Authorises requests to one service."""

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that authorise a POST of `body` to `url`,
        which is sent with `headers`.

        Raises `ModelUnavailable`, whose message says what to do: no credentials,
        or a sign-in that has run out.
        """
        ...


@runtime_checkable
class KeySigner(Signer, Protocol):
    """Authorises requests with a key, empty while it is not known."""

    key: str
