"""Google's CloudChain."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeloop.model.credentials.cloud_chain import CloudChain
from codeloop.model.credentials.google.discovery import ADVICE, find, settings

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import Signer


def open_signer(environment: Mapping[str, str], url: str) -> "Signer":
    """Return the signer of requests. Nothing is read before the first one."""
    del url
    from codeloop.model.credentials.google.tokens import GoogleSigner

    return GoogleSigner(environment)


CHAIN = CloudChain(find, open_signer, settings, ADVICE, takes_key=False)
