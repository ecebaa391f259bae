"""Environment variables that point programs to the sandbox's proxy."""

from collections.abc import Mapping

_DIRECT = "localhost,127.0.0.1,::1"
_SPELLINGS = {
    "http://127.0.0.1:{port}": (
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        # The user's configuration may name another proxy, which counts more than the variables of all programs.
        *("PIP_PROXY", "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"),
        *("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"),
    ),
    _DIRECT: ("NO_PROXY", "no_proxy", "npm_config_noproxy"),
    "1": ("NODE_USE_ENV_PROXY",),
}
_JAVA = (
    "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} "
    "-Daether.connector.http.useSystemProperties=true"
)
_JAVA_OPTIONS = ("MAVEN_OPTS", "GRADLE_OPTS")


def proxy_environment(port: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on a port of its `localhost`; they replace the user's."""
    variables = {name: value.format(port=port) for value, names in _SPELLINGS.items() for name in names}
    java = _JAVA.format(port=port)
    variables |= {name: f"{environment.get(name, '')} {java}".strip() for name in _JAVA_OPTIONS}
    config = environment.get("GIT_CONFIG_COUNT", "")
    count = int(config) if config.isascii() and config.isdecimal() else 0
    git = {f"GIT_CONFIG_KEY_{count}": "http.proxy", f"GIT_CONFIG_VALUE_{count}": variables["HTTP_PROXY"]}
    return variables | git | {"GIT_CONFIG_COUNT": str(count + 1)}
