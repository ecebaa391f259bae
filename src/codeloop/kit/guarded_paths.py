"""Guarded files, which need permission even under a blanket rule: those with keys,
and those that make programs run.

Reading needs it for secret files; changing for protected ones (each time) and confirmed
ones (once in a session).

Names are wildcards for one name (`*.pem`), folders may have several parts (`.config/gh`); both
count in any folder, since a work tree may be a home directory.
Paths are compared as on a disk that ignores case.
"""

import re
from functools import cache

from codeloop.kit.wildcard import NameSet

_KEY_NAMES = """
.env .env.* .env-* .env_* .envrc .envrc.* *.env
id_rsa* id_dsa* id_ecdsa* id_ed25519* *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.asc.key secring.*
.netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .git-credentials .vault-token .dockercfg .boto .s3cfg
credentials credentials.json credentials.yml credentials.yaml credentials.toml credentials.ini credentials.csv
credentials.xml credentials.properties credentials.yml.enc credentials.db credentials.tfrc.json
*service-account*.json *service_account*.json *serviceaccount*.json *firebase-adminsdk*.json client_secret*.json
application_default_credentials.json gha-creds-*.json
.dev.vars .dev.vars.* .secrets .secrets.* secrets.toml .vault_pass* .vault-pass* .mylogin.cnf .sentryclirc .clasprc.json
*.p8 *.pkcs12 *.jceks *.bks *.ovpn *.kubeconfig kubeconfig .terraformrc terraform.rc .ngrok.yml local.settings.json
key.properties keystore.properties
"""
_HARMLESS_NAME_LIST = "*.example *.sample *.template *.dist *.pub"
SECRET_NAMES = tuple(_KEY_NAMES.split())
HARMLESS_NAMES = tuple(_HARMLESS_NAME_LIST.split())
"""Files that are never secret, despite the rest of their name: `.env.example`, `id_rsa.pub`."""
_KEY_FOLDERS = """
.ssh .gnupg .aws .azure .kube .docker/config.json .config/gcloud .config/glab-cli .config/hub .config/op
.config/rclone .config/doctl .terraform.d/credentials.tfrc.json .password-store .local/share/keyrings
.local/share/kwalletd Library/Keychains .mozilla .config/google-chrome .config/chromium .config/BraveSoftware
.config/microsoft-edge .thunderbird .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
.gradle/gradle.properties .config/gh .config/git/credentials .docker/run .config/containers/auth.json
.cache/huggingface/token .huggingface/token .age .config/kwalletrc .config/sops .config/vivaldi .config/opera
snap/firefox snap/chromium .var/app Library/Cookies .local/share/opencode .claude/.credentials.json .claude.json
.codex/auth.json .config/github-copilot .bash_history .zsh_history .python_history .node_repl_history .psql_history
.mysql_history .local/share/fish/fish_history .databrickscfg .snowflake .Xauthority .1password .colima .lima .rd
.orbstack .local/share/containers/podman/machine .config/Bitwarden .config/1Password .config/keepassxc .oci
.config/heroku .linode-cli .config/linode-cli .aliyun .bluemix .ngrok2 .config/ngrok .kaggle .config/hcloud
.config/scw .config/stripe
.cache/huggingface/stored_tokens .luarocks/upload_config.lua .spack/mirrors.yaml .cpan/CPAN/MyConfig.pm
.pub-cache/credentials.json
"""
SECRET_FOLDERS = (
    *_KEY_FOLDERS.split(),
    "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
)  # fmt: skip
"""Folders, and files in certain folders, with keys, data of browsers, histories of shells,
or sockets of agents.
"""

_PROTECTED_NAME_LIST = """
codeloop.json codeloop.jsonc opencode.json opencode.jsonc .gitconfig .gitmodules .lfsconfig
.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
.mkshrc .cshrc .tcshrc .login .logout .inputrc .xinitrc .xprofile .xsession .xsessionrc .pam_environment
"""
PROTECTED_NAMES = tuple(_PROTECTED_NAME_LIST.split())
PROTECTED_FOLDERS = (
    ".git", ".hg", ".sl", ".jj", "_darcs", ".pijul",
    ".codeloop", ".opencode", ".config/codeloop", ".config/opencode", ".local/share/codeloop",
    ".local/state/codeloop", ".cache/codeloop", ".config/git", ".ssh", ".gnupg", ".aws", ".kube", ".config/fish",
    ".config/nushell", ".config/autostart", ".config/systemd", ".config/environment.d", ".local/share/systemd",
    ".local/bin",
    ".local/share/applications", "Library/LaunchAgents", "Library/LaunchDaemons", "etc/cron.d", "etc/cron.daily",
    "etc/cron.hourly", "etc/cron.weekly", "etc/cron.monthly", "etc/crontab", "etc/profile.d", "etc/profile",
    "etc/sudoers.d", "etc/sudoers", "etc/systemd", "etc/ld.so.preload", "var/spool/cron",
)  # fmt: skip
"""Files that decide how we and the user's programs run. Each change needs permission;
no "always" covers it.
"""
_OPENED_LIST = """
.vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/mcp.json .mcp.json mcp.json .cursor/mcp.json
.cursor/hooks.json .cursor/environment.json .claude/settings.json .claude/settings.local.json .claude/hooks
.gemini/settings.json .gemini/extensions .codex/config.toml .codex/hooks.json .zed/settings.json .zed/tasks.json
.windsurf/mcp_config.json .kiro/settings .roo/mcp.json mise.toml .mise.toml mise.local.toml .mise.local.toml .mise
.config/mise .config/mise.toml .exrc .vimrc .nvimrc .nvim.lua .helix .fleet .dir-locals.el .lfsconfig .envrc
.devcontainer.json .devcontainer .idea/runConfigurations .idea/externalTools.xml .idea/watcherTasks.xml
.idea/startup.xml .cursor/permissions.json .cursor/cli.json .codex/rules .windsurf/hooks.json .kiro/hooks
.clinerules/hooks .amazonq/mcp.json .amazonq/cli-agents .qwen/settings.json crush.json .crush.json
.factory/settings.json .factory/mcp.json .factory/hooks.json .augment/settings.json .kilocode/mcp.json .junie/mcp
.trae/mcp.json .amp/settings.json .continue/mcpServers .github/hooks .aider.conf.yml .lvimrc .localvimrc .dir-
locals-2.el .gitpod.yml .codesandbox/tasks.json .pdbrc .gdbinit .lldbinit .Rprofile .ghci .ocamlinit .pryrc .irbrc
.iex.exs
"""
OPENED_PATHS = tuple(_OPENED_LIST.split())
"""Files and folders at the top of a project that run or loosen something in other
programs when it is opened.
"""
_CONFIRMED_NAME_LIST = """
AGENTS.md CLAUDE.md GEMINI.md .cursorrules .windsurfrules .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf
.condarc .gemrc .pre-commit-config.yaml .pre-commit-config.yml .lefthook.yml lefthook.yml .lefthook.yaml lefthook.yaml
lefthook.toml lefthook.json lefthook-local.yml .gitlab-ci.yml *.code-workspace .overcommit.yml .simple-git-hooks.json
.travis.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml .woodpecker.yaml
appveyor.yml .appveyor.yml cloudbuild.yaml *.sublime-project
"""
CONFIRMED_NAMES = (
    *_CONFIRMED_NAME_LIST.split(),
    *(path for path in OPENED_PATHS if "/" not in path),
)
CONFIRMED_FOLDERS = (
    *(path for path in OPENED_PATHS if "/" in path), ".mise", ".helix", ".fleet", ".cursor", ".claude", ".gemini",
    ".codex", ".zed", ".windsurf", ".kiro", ".roo", ".husky", ".idea", ".devcontainer", ".github/workflows",
    ".github/actions", ".github/copilot-instructions.md", ".circleci", ".cargo/config", ".cargo/config.toml",
    ".woodpecker", ".buildkite", ".gitea/workflows", ".forgejo/workflows", ".semaphore", ".teamcity", ".tekton",
    ".githooks", ".mvn", ".run", ".externalToolBuilders", ".vs", ".claude-plugin", ".github/agents", ".yarn/releases",
    ".yarn/plugins", ".continue", ".amazonq", ".qwen", ".factory", ".augment", ".kilocode", ".junie", ".trae",
    ".config/pip", ".bundle/config", ".m2/settings.xml", ".gradle/init.gradle", ".gradle/init.d", ".config/uv",
)  # fmt: skip
"""Files of a project that make something run later.
The first change in a session needs permission.
"""

_INVISIBLE = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"
"""Characters that HFS+ ignores when it compares names."""


def fold_path(path: str) -> str:
    """Return a path as it is seen by disks that ignore case, invisible characters,
    or dots and blanks at a name's end.

    >>> fold_path("a/.GIT /Hooks")
    'a/.git/hooks'
    """
    if (
        path.isascii()
        and path.islower()
        and "~" not in path
        and ":" not in path
        and not re.search(r"[. ](/|$)", path)
    ):
        return path
    return "/".join(_fold_name(part) for part in path.split("/"))


def _fold_name(part: str) -> str:
    # On NTFS, what follows a colon is a stream of the same file: `.git::$INDEX_ALLOCATION`.
    name = re.sub(_INVISIBLE, "", part).casefold().partition(":")[0]
    name = name.rstrip(". ") or name
    # The short names that Windows gives `.git`: `GIT~1`, `GI7EBA~1`.
    return ".git" if re.fullmatch(r"git~\d+|gi[0-9a-f]{4}~\d", name) else name


def is_secret(path: str) -> bool:
    """Return whether a file holds keys or other private data, judged by its name and folder."""
    plain = fold_path(path)
    if plain.rpartition("/")[2] in _make_name_set(HARMLESS_NAMES):
        return False
    return _matches_any(plain, SECRET_NAMES, SECRET_FOLDERS)


def is_protected(path: str) -> bool:
    """Return whether every change of a file needs permission."""
    return _matches_any(fold_path(path), PROTECTED_NAMES, PROTECTED_FOLDERS)


def needs_confirmation(path: str) -> bool:
    """Return whether the first change of a file in a session needs permission."""
    return _matches_any(fold_path(path), CONFIRMED_NAMES, CONFIRMED_FOLDERS)


def is_opened(path: str) -> bool:
    """Return whether another program runs a file, or loosens something by it,
    when the project at its top is opened.
    """
    plain = fold_path(path)
    return any(plain == each or plain.startswith(f"{each}/") for each in OPENED_PATHS)


def _matches_any(plain: str, names: tuple[str, ...], folders: tuple[str, ...]) -> bool:
    """Return whether a folded path ends in one of the names, or has one of the folders in it."""
    path = f"/{plain}/"
    return plain.rpartition("/")[2] in _make_name_set(names) or any(
        each in path for each in _fold_folders(folders)
    )


@cache
def _fold_folders(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/{folder.casefold()}/" for folder in folders)


@cache
def _make_name_set(names: tuple[str, ...]) -> NameSet:
    return NameSet(names)
