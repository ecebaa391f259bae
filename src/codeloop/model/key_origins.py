"""Binds the user's keys of every kind to the addresses that the user, or the catalog,
names for a service.

A project may name another address, but no key of the user goes there.
Stored keys are bound by `credentials/store.py`.
"""

from collections.abc import Callable, Iterable

from msgspec import Struct

from codeloop.model.base_url import parse_origin, redact_url
from codeloop.model.errors import ModelUnavailable, WrongKeyOrigin

SecretPart = tuple[str, ...]
"""The path of a setting below its provider: `("options", "apiKey")`."""
_SECRET_PARTS: tuple[tuple[SecretPart, str], ...] = (
    (("options", "apiKey"), "The configured key"),
    (("options", "apiKeyHelper"), "The key that the configured `apiKeyHelper` prints"),
    (("options", "headers"), "The configured headers"),
)


class ForeignAddress(Struct, frozen=True):
    """An address that a project names for a provider.

    `own_origins`: those that the user or the catalog name;
    `holds`: returns whether a setting in effect is the user's.
    """

    provider_id: str
    url: str
    own_origins: tuple[str, ...]
    holds: Callable[..., bool]

    def check_settings(self, models: Iterable[str]) -> None:
        """Raise WrongKeyOrigin if a key of the user's own settings would be sent there.
        `models`: those configured.
        """
        headers = [
            (("models", name, "headers"), f"The headers of the model {name}") for name in models
        ]
        for part, what in (*_SECRET_PARTS, *headers):
            if self.holds(self.provider_id, *part):
                raise self.make_error(what)

    def make_error(self, what: str) -> WrongKeyOrigin:
        """Return the error for a key that would be sent there.
        `what`: which one, as the start of a sentence.
        """
        setting = f'{{"provider": {{"{self.provider_id}": {{"options": {{"baseURL": "{redact_url(self.url)}"}}}}}}}}'
        return WrongKeyOrigin(
            _describe(f"{what} of `{self.provider_id}`", self.url, self.own_origins, setting)
        )


def refuse_foreign_address(what: str, url: str, own_urls: Iterable[str], setting: str) -> str:
    """Return why a secret of the user is not sent to an address of a project;
    "": its origin is one of the user's.

    `what`: the secret, as the start of a sentence; `setting`: what names the address in
    the user's own configuration.
    """
    try:
        own_origins = tuple(dict.fromkeys(map(parse_origin, own_urls)))
        return (
            "" if parse_origin(url) in own_origins else _describe(what, url, own_origins, setting)
        )
    except ModelUnavailable as error:
        return str(error)


def _describe(what: str, url: str, own_origins: tuple[str, ...], setting: str) -> str:
    bound = " or ".join(own_origins) or "no address that you named"
    return (
        f"{what} is for {bound}, and is not sent to {parse_origin(url)}, which the project names.\n"
        "If you trust that address, name it in your own configuration "
        f"(~/.config/codeloop/codeloop.json): {setting}; else correct the project's."
    )


def find_foreign_address(
    provider_id: str, url: str, own_urls: Iterable[str], holds: Callable[..., bool]
) -> ForeignAddress | None:
    """Return the address of a provider as a foreign one;
    None: it has the origin of one of the user's.
    """
    own_origins = tuple(dict.fromkeys(map(parse_origin, own_urls)))
    return (
        None
        if parse_origin(url) in own_origins
        else ForeignAddress(provider_id, url, own_origins, holds)
    )
