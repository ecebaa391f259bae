"""Google's `CloudChain`. Apart from `discovery.py`, since the signer that it opens uses that module too."""

from collections.abc import Mapping

from codeloop.model.credentials.cloud_chain import CloudChain, Signer
from codeloop.model.credentials.google.discovery import ADVICE, describe_credentials, find_settings


def open_signer(environment: Mapping[str, str], url: str) -> Signer:
    """Return the signer of requests. Nothing is read before the first one."""
    del url
    from codeloop.model.credentials.google.tokens import GoogleSigner

    return GoogleSigner(environment)


CHAIN = CloudChain(describe_credentials, open_signer, find_settings, ADVICE, accepts_key=False)
