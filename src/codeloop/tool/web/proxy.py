"""Which proxy the user's environment names for a host. Pure."""

from collections.abc import Mapping

from codeloop.net.origin import is_local_name
from codeloop.tool.web.address import WebUrl


def proxy_for(place: WebUrl, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for a place, None for a direct connection.

    Read are `https_proxy`, `http_proxy` and `all_proxy`, lower case first, and `no_proxy` (names with all below them,
    addresses, `*`). `HTTP_PROXY` in capitals counts too: this program is never a CGI script.
    """
    if is_local_name(place.host):
        return None
    names = (f"{place.scheme}_proxy", f"{place.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environment[name] for name in names if environment.get(name)), None)
    if proxy is None or _is_excluded(place, environment.get("no_proxy") or environment.get("NO_PROXY") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_excluded(place: WebUrl, excluded: str) -> bool:
    for entry in excluded.split(","):
        name = entry.strip().lower()
        if name == "*":
            return True
        name = name.lstrip("*").removeprefix(".")
        if name and (name in {place.host, place.endpoint} or place.host.endswith(f".{name}")):
            return True
    return False
