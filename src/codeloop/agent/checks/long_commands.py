"""Tells the command lines that take long: builds, tests and installations."""

import re

from codeloop.shell.check_commands import is_check
from codeloop.shell.line_steps import split_line

# Programs that install or build, with the words behind them that do so;
# a program alone: whatever its words are.
_INSTALLERS = (
    r"(?:(?:sudo|env|time|nice|corepack|poetry run|uv run|python[\d.]* -m|mise exec|\w+=\S*) )*(?:\S*/)?(?:"
    r"(?:npm|pnpm|yarn|bun)(?: -\S+)* (?:i|ci|in|install|add|up|update|upgrade|dedupe|rebuild|clean-install|create)\b"
    r"|yarn$|(?:pip|pip3|pipx|pipenv|conda|mamba|micromamba)(?: -\S+)* (?:install|sync|create|update|download|wheel)\b"
    r"|(?:uv|poetry|pdm|hatch|rye)(?: pip| env)? (?:install|sync|lock|add|update|create|venv)\b"
    r"|(?:apt|apt-get|aptitude|dnf|yum|apk|pacman|zypper|brew|nix|nix-env)\b.*"
    r" (?:install|add|update|upgrade|dist-upgrade|build|-S\S*)\b"
    r"|(?:bundle|gem|composer|mix|cargo|rustup|go|dotnet|flutter|dart|stack|cabal|opam|conan"
    r"|vcpkg|cpanm|helm|terraform)"
    r" (?:install|update|require|deps\.get|fetch|add|get|mod|restore|pub|init|toolchain|setup)\b"
    r"|(?:docker|podman|buildah)(?: \S+)? (?:build|pull|compose|up)\b|playwright install|cpanm\b"
    r"|(?:cmake|ninja|make|gmake|bazel|buck2?|pants|meson|scons|gradle|gradlew|mvn|mvnw|ant|sbt|lein|xcodebuild)(?: |$)"
    r"|git (?:clone|fetch|pull|submodule update|lfs)\b"
    r")"
)


def takes_long(line: str) -> bool:
    """Return whether a command line builds, tests or installs something."""
    return is_check(line) or any(
        re.match(_INSTALLERS, " ".join(step.words)) for step in split_line(line)
    )
