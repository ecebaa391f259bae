"""The interface of cloud credentials: `CloudChain` and `Signer`.

A chain finds credentials in the cloud's own files and variables; its signer makes headers from them for each request.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable


class Signer(Protocol):
    """Authorises requests to one service."""

    async def sign(self, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that authorise a POST of `body` to `url`, which is sent with `headers`.

        Raises `ModelUnavailable`, whose message says what to do: no credentials, or a sign-in that has run out.
        """
        ...


@runtime_checkable
class KeySigner(Signer, Protocol):
    """Authorises requests with a key, empty while it is not known."""

    key: str


class CloudChain(NamedTuple):
    """The functions that find one cloud's credentials. None of them sends anything.

    `find` returns where they come from in words that may be shown, empty when there are none: it only looks at
    variables and files. `open_signer` takes the environment and the base URL of the service. `settings` returns what
    files and other variables say of the variables that an address is made of, such as the region. `advice` says how to
    get credentials, as a sentence. `accepts_key`: whether a stored key may be used in
    their place.
    """

    describe_credentials: Callable[[Mapping[str, str]], str]
    open_signer: Callable[[Mapping[str, str], str], Signer]
    find_settings: Callable[[Mapping[str, str]], Mapping[str, str]]
    advice: str
    accepts_key: bool
