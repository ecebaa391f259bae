"""The interface of a cloud's credentials (`CloudChain`).

A chain finds credentials in the cloud's own files and variables;
its signer makes headers from them for each request.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from codeloop.model.credentials.signer import Signer


class CloudChain(NamedTuple):
    """The functions that find one cloud's credentials.
    They only look at files and variables, and send nothing.

    `describe_credentials` takes the environment and returns where the credentials come from, in
    words that may be shown; empty when there are none. `open_signer` takes the environment and the
    base URL of the service. `find_settings` returns the variables that an address is made of, such
    as the region, by what the environment and the cloud's files say. `advice` says how to get
    credentials, as a sentence. `accepts_key`: whether a stored key may be used in their place.
    """

    describe_credentials: Callable[[Mapping[str, str]], str]
    open_signer: Callable[[Mapping[str, str], str], Signer]
    find_settings: Callable[[Mapping[str, str]], Mapping[str, str]]
    advice: str
    accepts_key: bool
