"""What no sandboxed command may reach, and what of a project decides what runs later. Rows, no code."""

TOKEN_FILES = {
    ".npmrc": rb"_auth\w*\s*=\s*(?!\$\{)\S|_password",
    ".yarnrc.yml": rb"npmAuth\w+:\s*(?!\W*\$\{)\S",
    ".config/pip/pip.conf": rb"://[^/\s]+@",
    ".pip/pip.conf": rb"://[^/\s]+@",
    "auth.json": rb'"(?:github-oauth|gitlab-(?:oauth|token)|bitbucket-oauth|http-basic|bearer)"',
    "nuget.config": rb"(?i)ClearTextPassword",
    "gradle.properties": rb"(?im)^[\w.]*(?:password|token|secret|passphrase)\s*[=:]\s*[^\s$]",
}
"""Tools need these, so they are unreadable only when they hold this: a token, not the name of a variable."""
TOOL_SETTINGS = ("pip.conf", ".condarc", "condarc", "rc", "pipx_metadata.json", "uv-receipt.toml", "config")
"""Names of files that installed tools keep beside their programs; unreadable when they hold a token."""
SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh"),
    *(
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/letsencrypt",
        "/etc/kubernetes",
        "/etc/rancher",
        "/etc/wireguard",
    ),
    *("/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d/private", "/etc/wpa_supplicant", "/etc/krb5.keytab"),
    *("/etc/NetworkManager/system-connections", "/etc/netplan", "/etc/mysql/debian.cnf", "/etc/postfix/sasl_passwd"),
    *("/etc/msmtprc", "/etc/exim4/passwd.client", "/etc/ppp", "/etc/rclone.conf", "/etc/vault.d", "/etc/consul.d"),
    *("/etc/containers/auth.json", "/etc/gitlab", "/etc/davfs2/secrets", "/etc/grafana", "/etc/openldap/slapd.d"),
    *("/var/lib/cloud", "/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet", "/var/lib/rancher"),
    *("/var/lib/mysql", "/var/lib/postgresql", "/var/lib/redis", "/var/lib/mongodb", "/var/lib/jenkins"),
    *("/var/lib/NetworkManager", "/var/lib/bluetooth", "/var/lib/AccountsService", "/var/lib/gitea", "/var/lib/sss"),
    *("/var/lib/systemd/coredump", "/var/crash", "/var/run/docker.sock"),
    *("/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/var/lib/incus/unix.socket"),
)
DATA = (
    *("/home", "/root", "/Users", "/Volumes", "/srv", "/mnt", "/media", "/var/www", "/var/backups", "/var/mail"),
    *("/var/spool", "/export/home"),
)
"""Where people and services keep what is theirs: of it, only the project and tools are there for commands."""
_PROGRAMS = """
bin boot dev etc lib lib32 lib64 libx32 proc run sbin sys tmp usr var opt nix gnu snap cores private
System Library Applications
"""
SYSTEM = frozenset(_PROGRAMS.split())
"""Folders at the top that hold programs. Of any other one, in which a project lies, only the project is there."""
SOCKETS = (
    *("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DOCKER_HOST", "CONTAINER_HOST"),
    *("GPG_AGENT_INFO", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "SWAYSOCK", "I3SOCK", "TMUX", "STY", "NVIM"),
    *("KITTY_LISTEN_ON", "VSCODE_IPC_HOOK_CLI"),
)
"""Variables that lead to sockets of others: a sandboxed command does not get them."""

OWN_NAMES = ("codeloop.json", "codeloop.jsonc", "opencode.json", "opencode.jsonc", ".codeloop", ".opencode")
"""Our configuration in a project: read-only where it is, and none may appear."""
VCS_NAMES = (
    *(".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".sl/config", ".sl/sharedpath", ".jj/repo/config.toml"),
    *(".jj/workspace-config.toml", "_darcs/prefs/defaults", ".pijul/config"),
)
"""What of other version control at the top of a project decides which programs it runs; the same."""
TEST_FOLDERS = frozenset({"test", "tests", "testdata", "fixtures", "examples", "spec"})
"""Private keys below these are made for tests."""
SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "target", "site-packages", ".tox", ".nox"})
"""Folders of a project in which no secrets of its own are looked for."""
