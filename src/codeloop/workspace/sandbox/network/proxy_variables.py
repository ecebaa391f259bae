"""The environment variables that lead a sandboxed command's programs to the sandbox's proxy."""

from collections.abc import Mapping

from codeloop.kit.git import make_git_settings

_DIRECT_HOSTS = "localhost,127.0.0.1,::1"
"""Hosts that commands reach without the proxy: servers that other commands in
the sandbox have started.
"""
PROXY_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    # The user's configuration of these tools may name another proxy,
    # which only the tool's own variable overrides.
    *("PIP_PROXY", "CARGO_HTTP_PROXY", "npm_config_proxy", "npm_config_https_proxy"),
    *("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"),
)
"""Variables whose value is the proxy's URL."""
_NAMES_BY_VALUE = {
    "http://127.0.0.1:{port}": PROXY_VARIABLES,
    _DIRECT_HOSTS: ("NO_PROXY", "no_proxy", "npm_config_noproxy"),
    "1": ("NODE_USE_ENV_PROXY",),
}
_JAVA_PROPERTIES = (
    "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={port} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port} "
    "-Daether.connector.http.useSystemProperties=true"
)
_JAVA_OPTION_VARIABLES = ("MAVEN_OPTS", "GRADLE_OPTS")


def make_proxy_environment(port: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a command whose proxy listens on a port of its `localhost`.

    `environment`: the user's variables, which these replace,
    or extend where they hold options of Java.
    """
    variables = {
        name: value.format(port=port) for value, names in _NAMES_BY_VALUE.items() for name in names
    }
    java = _JAVA_PROPERTIES.format(port=port)
    variables |= {
        name: f"{environment.get(name, '')} {java}".strip() for name in _JAVA_OPTION_VARIABLES
    }
    # git's own setting overrides the variables, so it is set as well.
    return variables | make_git_settings({"http.proxy": variables["HTTP_PROXY"]}, environment)
