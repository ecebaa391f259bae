"""Offline mode (`--offline` or `CODELOOP_OFFLINE=1`): only this machine and private networks are reachable."""

import os
from collections.abc import Mapping

from codeloop.net.hosts import is_local_host

OFFLINE_VARIABLE = "CODELOOP_OFFLINE"
OFFLINE_MESSAGE = f"codeloop is offline (--offline or {OFFLINE_VARIABLE})"
_PRIVATE_NAME_ENDINGS = (".local", ".lan", ".internal", ".home.arpa")
"""Endings of names in private networks (RFC 6762, RFC 8375, and ICANN's `internal`)."""


def is_offline(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment asks for offline mode."""
    return environment.get(OFFLINE_VARIABLE, "").strip().lower() not in {"", "0", "false", "no"}


def is_reachable_offline(host: str) -> bool:
    """Return whether a host is this machine or in a private network, by its address or name. Asks no name server.

    A name without a dot counts too: it belongs to this network, such as that of another container.
    """
    from codeloop.net.address import classify_non_public

    # A dot at the end only says that the name is complete.
    plain = host.strip("[]").lower().rstrip(".")
    if is_local_host(plain) or plain.endswith(_PRIVATE_NAME_ENDINGS):
        return True
    try:
        return classify_non_public(plain) is not None
    except ValueError:
        return "." not in plain


def require_reachable(host: str, environment: Mapping[str, str] = os.environ) -> None:
    """Raise NetworkError("offline") for a host that must not be reached in offline mode."""
    if is_offline(environment) and not is_reachable_offline(host):
        # Imported late: most runs are not offline.
        from codeloop.net.errors import NetworkError

        raise NetworkError("offline", OFFLINE_MESSAGE)
