"""Sign-in with PKCE (RFC 7636): a page redirects to this machine with a code,
which is exchanged for a key.

Only services that need no client id are supported.
"""

from base64 import urlsafe_b64encode
from hashlib import sha256
from secrets import token_urlsafe
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from codeloop.model.credentials.cloud_request import send_request
from codeloop.model.credentials.store import is_valid_key
from codeloop.model.errors import ModelUnavailable


class PkceService(NamedTuple):
    """A service: its name and base URL, and the paths of its page and its keys.

    `port`: that of this machine to which its page redirects.
    """

    name: str
    base_url: str
    page_path: str
    keys_path: str
    port: int


PKCE_SERVICES: dict[str, PkceService] = {
    "openrouter": PkceService(
        name="OpenRouter",
        base_url="https://openrouter.ai",
        page_path="/auth",
        keys_path="/api/v1/auth/keys",
        port=3000,
    )
}
"""By provider."""


def make_verifier() -> str:
    """Make the secret by which the program that fetches the key proves that
    it has opened the page.
    """
    # 64 characters; RFC 7636 allows 43 to 128.
    return token_urlsafe(48)


def make_page_url(service: PkceService, base_url: str, callback: str, verifier: str) -> str:
    """Return the URL of the page, which redirects to `callback` with a code.
    `base_url`: as configured.
    """
    # The page only learns the hash: whoever reads its address can't fetch the key with it.
    challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {"callback_url": callback, "code_challenge": challenge, "code_challenge_method": "S256"}
    return f"{base_url}{service.page_path}?{urlencode(query)}"


async def fetch_key(service: PkceService, base_url: str, code: str, verifier: str) -> str:
    """Exchange a code for the key. Raises `ModelUnavailable`: the service gives none."""
    body = msgspec.json.encode(
        {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"}
    )
    answer = await send_request(
        "POST", base_url + service.keys_path, {"content-type": "application/json"}, body
    )
    key = answer.json.get("key")
    if answer.status != 200 or not isinstance(key, str) or not is_valid_key(key):
        raise ModelUnavailable(
            f"{service.name} gives no key: {answer.describe_error()}. Sign in again, or enter a key."
        )
    return key
