"""Amazon's `CloudChain`. Apart from `discovery.py`, since the signer that it opens uses that module too."""

from collections.abc import Mapping

from codeloop.model.credentials.aws.discovery import ADVICE, describe_credentials, find_settings
from codeloop.model.credentials.cloud_chain import CloudChain, Signer


def open_signer(environment: Mapping[str, str], url: str) -> Signer:
    """Return the signer of requests. Nothing is read before the first one."""
    from codeloop.model.credentials.aws.keys import AwsSigner

    return AwsSigner(environment, url)


CHAIN = CloudChain(describe_credentials, open_signer, find_settings, ADVICE, accepts_key=True)
