"""Tables of paths that sandboxed commands may not read, or not write: secrets, system folders,
configuration, sockets.

No code: `policy.py`, `surroundings.py` and `secret_files.py` look most of these up.
"""

from pathlib import Path

from codeloop.kit.guarded_paths import OPENED_PATHS

TOKEN_FILES = {
    ".npmrc": rb"_auth\w*\s*=\s*(?!\$\{)\S|_password",
    ".yarnrc.yml": rb"npmAuth\w+:\s*(?!\W*\$\{)\S",
    ".config/pip/pip.conf": rb"://[^/\s]+@",
    ".pip/pip.conf": rb"://[^/\s]+@",
    "auth.json": rb'"(?:github-oauth|gitlab-(?:oauth|token)|bitbucket-oauth|http-basic|bearer)"',
    "nuget.config": rb"(?i)ClearTextPassword",
    "gradle.properties": rb"(?im)^[\w.]*(?:password|token|secret|passphrase)\s*[=:]\s*[^\s$]",
}
"""Files that tools need -> the pattern of a token. They are unreadable only if they match it.

A reference to a variable that holds the token does not match.
"""
TOOL_SETTINGS_NAMES = (
    "pip.conf",
    ".condarc",
    "condarc",
    "rc",
    "pipx_metadata.json",
    "uv-receipt.toml",
    "config",
)
"""Names of files that installed tools keep next to their programs;
unreadable if they hold a token.
"""
SYSTEM_SECRETS = (
    *(
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/shadow-",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/ssh",
    ),
    *(
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/letsencrypt",
        "/etc/kubernetes",
        "/etc/rancher",
    ),
    "/etc/wireguard",
    *(
        "/etc/openvpn",
        "/etc/ipsec.secrets",
        "/etc/ipsec.d/private",
        "/etc/wpa_supplicant",
        "/etc/krb5.keytab",
    ),
    *(
        "/etc/NetworkManager/system-connections",
        "/etc/netplan",
        "/etc/mysql/debian.cnf",
        "/etc/postfix/sasl_passwd",
    ),
    *(
        "/etc/msmtprc",
        "/etc/exim4/passwd.client",
        "/etc/ppp",
        "/etc/rclone.conf",
        "/etc/vault.d",
        "/etc/consul.d",
    ),
    *(
        "/etc/containers/auth.json",
        "/etc/gitlab",
        "/etc/davfs2/secrets",
        "/etc/grafana",
        "/etc/openldap/slapd.d",
    ),
    *(
        "/var/lib/cloud",
        "/var/lib/docker",
        "/var/lib/containers",
        "/var/lib/kubelet",
        "/var/lib/rancher",
    ),
    *(
        "/var/lib/mysql",
        "/var/lib/postgresql",
        "/var/lib/redis",
        "/var/lib/mongodb",
        "/var/lib/jenkins",
    ),
    *(
        "/var/lib/NetworkManager",
        "/var/lib/bluetooth",
        "/var/lib/AccountsService",
        "/var/lib/gitea",
        "/var/lib/sss",
    ),
    *("/var/lib/systemd/coredump", "/var/crash", "/var/run/docker.sock"),
    *(
        "/var/lib/lxd/unix.socket",
        "/var/snap/lxd/common/lxd/unix.socket",
        "/var/lib/incus/unix.socket",
    ),
)
TEMPORARY_FOLDERS = tuple(Path("/", name) for name in ("tmp", "var/tmp"))
"""Folders that a private one replaces in sandboxes."""
DATA_FOLDERS = (
    *(
        "/home",
        "/root",
        "/Users",
        "/Volumes",
        "/srv",
        "/mnt",
        "/media",
        "/var/www",
        "/var/backups",
        "/var/mail",
    ),
    *("/var/spool", "/export/home"),
)
"""Folders of users and services. Commands see only the project and tools in them."""
_SYSTEM_FOLDERS = """
bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys tmp usr var opt nix gnu snap cores private
System Library Applications
"""
SYSTEM_FOLDER_NAMES = frozenset(_SYSTEM_FOLDERS.split())
"""Top-level folders of the system. Of any other that contains the project,
only the project is visible.
"""
OFFLINE_VARIABLES = {
    "PIP_RETRIES": "1",
    "UV_HTTP_RETRIES": "0",
    "npm_config_fetch_retries": "0",
    "YARN_HTTP_RETRY": "0",
    "CARGO_NET_RETRY": "0",
    "BUNDLE_RETRY": "0",
}
"""What programs are told in a sandbox without a network: their waits for a second try (npm: over
a minute) can't help there. pip says what failed only before a second try.
"""
SOCKET_VARIABLES = (
    *(
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_SYSTEM_BUS_ADDRESS",
        "DOCKER_HOST",
        "CONTAINER_HOST",
    ),
    *(
        "GPG_AGENT_INFO",
        "WAYLAND_DISPLAY",
        "DISPLAY",
        "XAUTHORITY",
        "SWAYSOCK",
        "I3SOCK",
        "TMUX",
        "STY",
        "NVIM",
    ),
    *("KITTY_LISTEN_ON", "VSCODE_IPC_HOOK_CLI"),
)
"""Variables that point to sockets of other programs, which sandboxed commands do not get."""

CONFIG_NAMES = (
    "codeloop.json",
    "codeloop.jsonc",
    "opencode.json",
    "opencode.jsonc",
    ".codeloop",
    ".opencode",
)
"""Names of our configuration in a project: existing files are read-only,
and absent ones may not be created.
"""
VCS_CONFIG_NAMES = (
    *(
        ".hg/hgrc",
        ".hg/hgrc-not-shared",
        ".hg/sharedpath",
        ".sl/config",
        ".sl/sharedpath",
        ".jj/repo/config.toml",
    ),
    *(".jj/workspace-config.toml", "_darcs/prefs/defaults", ".pijul/config"),
)
"""Files of other version control systems at the top of a project that decide which
programs run: also read-only.
"""
TOP_NAMES = (*CONFIG_NAMES, *VCS_CONFIG_NAMES, *OPENED_PATHS)
"""All paths at the top of a project that no command may change or make."""
# Private keys in such folders are made for tests.
TEST_FOLDER_NAMES = frozenset({"test", "tests", "testdata", "fixtures", "examples", "spec"})
FOLDERS_NOT_SEARCHED = frozenset(
    {
        ".git",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        "target",
        "site-packages",
        ".tox",
        ".nox",
    }
)
"""Folders of a project that are not searched for secrets,
repositories and files that rules deny.
"""
