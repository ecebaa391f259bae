"""Where things lie: caches that tools fill, and what of others no command may reach. Rows, no code."""

import sys
from typing import NamedTuple


class Cache(NamedTuple):
    """A folder that a program fills: where it is below the home, and the variable that puts it elsewhere."""

    program: str
    folder: str
    variable: str = ""


_OF_MACOS = (
    Cache("pip3", "Library/Caches/pip", "PIP_CACHE_DIR"),
    Cache("python3", "Library/Caches/pip", "PIP_CACHE_DIR"),
    Cache("yarn", "Library/Caches/Yarn", "YARN_CACHE_FOLDER"),
    Cache("go", "Library/Caches/go-build", "GOCACHE"),
)
CACHES = (
    Cache("pip", ".cache/pip", "PIP_CACHE_DIR"),
    Cache("python3", ".cache/pip", "PIP_CACHE_DIR"),
    Cache("uv", ".cache/uv", "UV_CACHE_DIR"),
    Cache("poetry", ".cache/pypoetry", "POETRY_CACHE_DIR"),
    Cache("pipenv", ".cache/pipenv", "PIPENV_CACHE_DIR"),
    Cache("pre-commit", ".cache/pre-commit", "PRE_COMMIT_HOME"),
    Cache("ruff", ".cache/ruff", "RUFF_CACHE_DIR"),
    Cache("mypy", ".cache/mypy", "MYPY_CACHE_DIR"),
    Cache("black", ".cache/black", "BLACK_CACHE_DIR"),
    Cache("pylint", ".cache/pylint", "PYLINTHOME"),
    Cache("npm", ".npm", "npm_config_cache"),
    Cache("npm", ".cache/node-gyp"),
    Cache("pnpm", ".local/share/pnpm/store", "npm_config_store_dir"),
    Cache("pnpm", ".cache/pnpm"),
    Cache("yarn", ".cache/yarn", "YARN_CACHE_FOLDER"),
    Cache("yarn", ".yarn/berry"),
    Cache("corepack", ".cache/node/corepack", "COREPACK_HOME"),
    Cache("bun", ".bun/install/cache", "BUN_INSTALL_CACHE_DIR"),
    Cache("deno", ".cache/deno", "DENO_DIR"),
    Cache("playwright", ".cache/ms-playwright", "PLAYWRIGHT_BROWSERS_PATH"),
    Cache("cargo", ".cargo/registry"),
    Cache("cargo", ".cargo/git"),
    Cache("go", "go/pkg/mod", "GOMODCACHE"),
    Cache("go", "go/pkg/sumdb"),
    Cache("go", ".cache/go-build", "GOCACHE"),
    Cache("golangci-lint", ".cache/golangci-lint", "GOLANGCI_LINT_CACHE"),
    Cache("gradle", ".gradle/caches"),
    Cache("gradle", ".gradle/daemon"),
    Cache("gradle", ".gradle/native"),
    Cache("gradle", ".gradle/notifications"),
    Cache("gradlew", ".gradle/wrapper/dists"),
    Cache("gradlew", ".gradle/caches"),
    Cache("gradlew", ".gradle/daemon"),
    Cache("gradlew", ".gradle/native"),
    Cache("gradlew", ".gradle/notifications"),
    Cache("mvn", ".m2/repository"),
    Cache("mvnw", ".m2/repository"),
    Cache("mvnw", ".m2/wrapper/dists"),
    Cache("composer", ".cache/composer", "COMPOSER_CACHE_DIR"),
    Cache("dotnet", ".nuget/packages", "NUGET_PACKAGES"),
    Cache("bundle", ".bundle/cache"),
    Cache("dart", ".pub-cache", "PUB_CACHE"),
    Cache("ccache", ".cache/ccache", "CCACHE_DIR"),
    Cache("sccache", ".cache/sccache", "SCCACHE_DIR"),
    Cache("zig", ".cache/zig", "ZIG_GLOBAL_CACHE_DIR"),
    Cache("gopls", ".cache/gopls"),
    Cache("clangd", ".cache/clangd"),
    Cache("jdtls", ".cache/jdtls"),
    Cache("zls", ".cache/zls"),
    Cache("haskell-language-server-wrapper", ".cache/hie-bios"),
    Cache("lua-language-server", ".cache/lua-language-server"),
    *(_OF_MACOS if sys.platform == "darwin" else ()),
)
"""Writable. One that is absent is made when its program is installed."""

TOKEN_FILES = {
    ".npmrc": rb"_auth\w*\s*=\s*(?!\$\{)\S|_password",
    ".yarnrc.yml": rb"npmAuth\w+:\s*(?!\W*\$\{)\S",
    ".config/pip/pip.conf": rb"://[^/\s]+@",
    ".pip/pip.conf": rb"://[^/\s]+@",
}
"""Tools need these, so they are unreadable only when they hold this: a token, not the name of a variable."""
SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/var/run/docker.sock"),
    *("/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket"),
)
SOCKETS = (
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST"),
    *("GPG_AGENT_INFO", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "SWAYSOCK", "I3SOCK", "TMUX", "STY", "NVIM"),
    *("KITTY_LISTEN_ON", "VSCODE_IPC_HOOK_CLI"),
)
"""Variables that lead to sockets of others: a sandboxed command does not get them."""

OWN_NAMES = ("codeloop.json", "codeloop.jsonc", "opencode.json", "opencode.jsonc", ".codeloop", ".opencode")
"""Our configuration in a project: read-only where it is, and none may appear."""
GIT_NAMES = ("hooks", "config", "config.worktree", "info/attributes", "commondir")
"""What of a git directory decides which programs git runs."""
TEST_FOLDERS = frozenset({"test", "tests", "testdata", "fixtures", "examples", "spec"})
"""Private keys below these are made for tests."""
SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "target", "site-packages", ".tox", ".nox"})
"""Folders of a project in which no secrets of its own are looked for."""
