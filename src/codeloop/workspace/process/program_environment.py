"""What programs that run beside us see of our environment: a list of names, none of which is a key's."""

from collections.abc import Mapping

ALLOWED = frozenset(
    (
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "COLORTERM", "NO_COLOR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PYENV_ROOT", "JAVA_HOME", "DENO_DIR", "BUN_INSTALL", "CARGO_HOME"),
        *("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_CACHE_DIR", "npm_config_registry", "DOCKER_HOST"),
        *("NPM_CONFIG_REGISTRY", "npm_config_cache", "NPM_CONFIG_CACHE", "PLAYWRIGHT_BROWSERS_PATH"),
    )
)
_STARTS = ("LC_", "XDG_")


def program_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program: what is allowed of ours, then what its definition sets."""
    passed = {name: value for name, value in environment.items() if name in ALLOWED or name.startswith(_STARTS)}
    return {**passed, **own}
