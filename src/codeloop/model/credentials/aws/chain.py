"""Amazon's CloudChain."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codeloop.model.credentials.aws.discovery import ADVICE, find, settings
from codeloop.model.credentials.cloud_chain import CloudChain

if TYPE_CHECKING:
    from codeloop.model.credentials.cloud_chain import Signer


def open_signer(environment: Mapping[str, str], url: str) -> "Signer":
    """Return the signer of requests. Nothing is read before the first one."""
    from codeloop.model.credentials.aws.signer import AwsSigner

    return AwsSigner(environment, url)


CHAIN = CloudChain(find, open_signer, settings, ADVICE, takes_key=True)
