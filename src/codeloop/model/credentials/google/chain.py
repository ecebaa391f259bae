"""Google's `CloudChain`, put together from `discovery.py` and the signer,
which uses that module too.
"""

from collections.abc import Mapping

from codeloop.model.credentials.cloud_chain import CloudChain
from codeloop.model.credentials.google.discovery import ADVICE, describe_credentials, find_settings
from codeloop.model.credentials.signer import Signer


def open_signer(environment: Mapping[str, str], url: str) -> Signer:
    """Return the signer of requests. No credentials are read before the first one."""
    del url
    from codeloop.model.credentials.google.tokens import GoogleSigner

    return GoogleSigner(environment)


CHAIN = CloudChain(
    describe_credentials=describe_credentials,
    open_signer=open_signer,
    find_settings=find_settings,
    advice=ADVICE,
    accepts_key=False,
)
