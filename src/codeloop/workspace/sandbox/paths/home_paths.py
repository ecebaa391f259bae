"""Tables of paths below the home that sandboxed commands see: tools, settings without tokens,
and caches.

No code: `surroundings.py` looks the paths up on the disk. Any other file in the home is invisible,
unless the project, the PATH or the configuration leads to it.
"""

import sys
from typing import NamedTuple


class Cache(NamedTuple):
    """A tool's cache. `folder`: its usual path below the home;
    `variable`: the one that names another path.

    `parent_variable`: the variable that names another parent folder;
    `name_in_parent`: the cache's path below that.
    """

    folder: str
    variable: str = ""
    parent_variable: str = ""
    name_in_parent: str = ""


_MACOS_CACHES = (
    Cache("Library/Caches/pip", "PIP_CACHE_DIR"),
    Cache("Library/Caches/Yarn", "YARN_CACHE_FOLDER"),
    Cache("Library/Caches/go-build", "GOCACHE"),
    Cache("Library/Caches/Homebrew"),
)
_PLAIN_CACHES = """
.cache/node-gyp .cache/pnpm .yarn/berry .cache/puppeteer .cache/Cypress .cache/electron .cache/electron-builder
.cache/typescript .cache/turbo .cache/prisma .cache/bazel .cache/bazelisk .cache/pdm .cache/hatch .cache/rattler
.cache/fontconfig .cache/matplotlib .cache/torch .cache/huggingface .cache/vcpkg .cache/rebar3 .cache/gopls
.cache/clangd .cache/jdtls .cache/zls .cache/hie-bios .cache/lua-language-server .cache/nix .cache/node
.bundle/cache .cabal/packages .cabal/store .stack/snapshots .stack/pantry .hex/packages .cocoapods/repos
.local/share/NuGet .terraform.d/plugin-cache .m2/wrapper .ivy2/cache .ivy2/local .sbt/boot .konan
.conan2/p .conan/data .julia/packages .julia/artifacts .julia/compiled .julia/registries .cpan .cpanm
"""
CACHES = (
    Cache(".cache/pip", "PIP_CACHE_DIR"),
    Cache(".cache/uv", "UV_CACHE_DIR"),
    Cache(".cache/pypoetry", "POETRY_CACHE_DIR"),
    Cache(".cache/pipenv", "PIPENV_CACHE_DIR"),
    Cache(".cache/pre-commit", "PRE_COMMIT_HOME"),
    Cache(".cache/ruff", "RUFF_CACHE_DIR"),
    Cache(".cache/mypy", "MYPY_CACHE_DIR"),
    Cache(".cache/black", "BLACK_CACHE_DIR"),
    Cache(".cache/pylint", "PYLINTHOME"),
    Cache(".npm", "npm_config_cache"),
    Cache(".local/share/pnpm/store", "npm_config_store_dir"),
    Cache(".cache/yarn", "YARN_CACHE_FOLDER"),
    Cache(".cache/node/corepack", "COREPACK_HOME"),
    Cache(".bun/install/cache", "BUN_INSTALL_CACHE_DIR"),
    Cache(".cache/deno", "DENO_DIR"),
    Cache(".cache/ms-playwright", "PLAYWRIGHT_BROWSERS_PATH"),
    Cache(".cargo/registry", parent_variable="CARGO_HOME", name_in_parent="registry"),
    Cache(".cargo/git", parent_variable="CARGO_HOME", name_in_parent="git"),
    Cache("go/pkg", parent_variable="GOPATH", name_in_parent="pkg"),
    Cache("go/pkg/mod", "GOMODCACHE"),
    Cache(".cache/go-build", "GOCACHE"),
    Cache(".cache/golangci-lint", "GOLANGCI_LINT_CACHE"),
    *(
        Cache(f".gradle/{name}", parent_variable="GRADLE_USER_HOME", name_in_parent=name)
        for name in ("caches", "daemon", "native", "notifications", "wrapper", "jdks")
    ),
    Cache(".m2/repository"),
    Cache(".cache/coursier", "COURSIER_CACHE"),
    Cache(".cache/composer", "COMPOSER_CACHE_DIR"),
    Cache(".composer/cache", "COMPOSER_CACHE_DIR"),
    Cache(".nuget/packages", "NUGET_PACKAGES"),
    Cache(".pub-cache", "PUB_CACHE"),
    Cache(".cache/ccache", "CCACHE_DIR"),
    Cache(".ccache", "CCACHE_DIR"),
    Cache(".cache/sccache", "SCCACHE_DIR"),
    Cache(".cache/zig", "ZIG_GLOBAL_CACHE_DIR"),
    *map(Cache, _PLAIN_CACHES.split()),
    *(_MACOS_CACHES if sys.platform == "darwin" else ()),
)
"""Caches that commands read, while their writes go to a layer of the project.
A missing one is in the private home.
"""

_TOOLS = """
.local/bin .local/lib .local/libexec .local/share/uv/python .local/share/uv/tools .local/share/pipx .local/pipx
.local/share/mise/installs .local/share/mise/shims .local/share/mise/plugins .local/share/rtx .local/share/fnm
.local/share/pnpm .local/share/virtualenvs .local/share/hatch/env .local/share/pdm/venvs .local/share/man
.local/share/pypoetry/venv .local/share/nvim-tools .local/share/gem .local/share/go .local/share/coursier
.local/share/swiftly .local/share/fonts .local/share/zinit .local/share/aquaproj-aqua .local/share/bob
.local/state/nix/profiles .local/state/fnm_multishells .nix-profile .nix-defexpr
.pyenv .rbenv .nodenv .goenv .jenv .plenv .phpenv .tfenv .tgenv .nvm .fnm .n .volta .asdf .sdkman/candidates .rvm
.rustup .cargo/bin .cargo/env go/bin sdk .go .gvm .bun/bin .bun/install/global .deno/bin .dotnet/tools .dotnet/sdk
.dotnet/shared .dotnet/host .dotnet/dotnet .dotnet/packs .dotnet/templates .dotnet/sdk-manifests .gem/ruby .opam
.ghcup/bin .ghcup/ghc .ghcup/share .stack/programs .cabal/bin .elan .juliaup .julia/juliaup .swiftly/bin
.linuxbrew .composer/vendor .config/composer/vendor .krew/bin .krew/store .foundry/bin .foundry/versions .wasmtime
.wasmer/bin .fly/bin .pulumi/bin .poetry/bin .poetry/lib .rye/py .rye/shims .rye/tools .rye/self .pixi/bin .pixi/envs
miniconda3 anaconda3 miniforge3 mambaforge micromamba .miniconda3 .conda/envs .conda/pkgs .virtualenvs .venvs
.mix/archives .mix/elixir .proto/bin .proto/tools .proto/shims .moon .jbang/bin .arkade/bin perl5 .perl5 .luarocks
.nimble/bin .nimble/pkgs .nimble/pkgs2 .choosenim .zvm .vcpkg .emsdk Android/Sdk Library/Android/sdk flutter
.pub-cache/bin .platformio/penv .fonts .terminfo .local/share/cargo/bin .local/share/rustup .git-templates
.kotlinc .spack .erlangs .kerl .kiex .swiftenv .tenv .luaver .phpbrew .config/herd-lite/bin Library/Python
"""
TOOL_FOLDERS = tuple(_TOOLS.split())
"""Folders below the home that are visible, with their contents."""

_SETTINGS = """
.gitconfig .config/git .gitignore .gitignore_global .gitattributes .gitmessage .npmrc .yarnrc .yarnrc.yml .bunfig.toml
.config/pip/pip.conf .pip/pip.conf .config/uv/uv.toml .config/pypoetry/config.toml .condarc .mambarc .cargo/config
.cargo/config.toml .editorconfig .config/ruff .config/black .config/flake8 .flake8 .pylintrc .config/pylintrc
.mypy.ini .config/mypy .config/pycodestyle .prettierrc .config/prettier .eslintrc .eslintrc.json .rustfmt.toml
.config/rustfmt .clang-format .clang-tidy .config/clangd .config/ccache .tool-versions .asdfrc .node-version .nvmrc
.python-version .ruby-version .default-python-packages .gemrc .bundle/config .irbrc .rspec .m2/settings.xml
.m2/toolchains.xml .mavenrc .config/go/env .config/nix/nix.conf .bazelrc .config/fontconfig .inputrc
.config/mise/config.toml .config/pnpm/rc .Rprofile .juliarc.jl .tidyrc .shellcheckrc .yamllint .config/yamllint
.ocamlformat .config/composer/config.json .jshintrc .stylelintrc .markdownlintrc .actrc .sqlfluff .config/starship.toml
"""
SETTINGS_FILES = tuple(_SETTINGS.split())
"""Settings files below the home that are visible unless they hold a token."""
NPM_SETTINGS_FILES = (
    *(
        ".nvm/versions/node/*/etc/npmrc",
        ".local/share/mise/installs/node/*/etc/npmrc",
        ".n/etc/npmrc",
    ),
    *(
        ".asdf/installs/nodejs/*/etc/npmrc",
        ".volta/tools/image/node/*/etc/npmrc",
        ".nodenv/versions/*/etc/npmrc",
    ),
    *(
        ".local/share/fnm/node-versions/*/installation/etc/npmrc",
        ".fnm/node-versions/*/installation/etc/npmrc",
    ),
)
"""Global npm settings of each version of Node; unreadable if they hold a token."""
COPYING_VARIABLES = {
    "UV_LINK_MODE": "copy",
    "pnpm_config_store_dir": "{home}/.local/share/pnpm/store",
}
"""Variables for tools that hard-link files from a cache; `{home}`: the home that commands see.

A hard link out of a layer fails, so uv has to copy; pnpm would make a store in the project instead.
"""

FOLDER_VARIABLES = (
    *(
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_ROOT",
        "MAMBA_ROOT_PREFIX",
        "PYENV_ROOT",
        "PIPX_HOME",
        "PIPX_BIN_DIR",
    ),
    *(
        "UV_PYTHON_INSTALL_DIR",
        "UV_TOOL_DIR",
        "UV_TOOL_BIN_DIR",
        "WORKON_HOME",
        "POETRY_HOME",
        "NVM_DIR",
        "NVM_BIN",
    ),
    *(
        "FNM_DIR",
        "FNM_MULTISHELL_PATH",
        "VOLTA_HOME",
        "N_PREFIX",
        "NODE_PATH",
        "PNPM_HOME",
        "RUSTUP_HOME",
        "GOROOT",
    ),
    *(
        "GOBIN",
        "JAVA_HOME",
        "JDK_HOME",
        "SDKMAN_CANDIDATES_DIR",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_INSTALLS_DIR",
    ),
    *(
        "MISE_DATA_DIR",
        "JENV_ROOT",
        "PLENV_ROOT",
        "TFENV_ROOT",
        "UV_PROJECT_ENVIRONMENT",
        "MAMBA_EXE",
        "CONDA_EXE",
    ),
    *(
        "RBENV_ROOT",
        "NODENV_ROOT",
        "GOENV_ROOT",
        "GEM_HOME",
        "GEM_PATH",
        "BUNDLE_PATH",
        "DOTNET_ROOT",
        "OPAMROOT",
    ),
    *(
        "OPAM_SWITCH_PREFIX",
        "ANDROID_HOME",
        "ANDROID_SDK_ROOT",
        "ANDROID_NDK_HOME",
        "FLUTTER_ROOT",
        "M2_HOME",
    ),
    *(
        "MAVEN_HOME",
        "GRADLE_HOME",
        "KOTLIN_HOME",
        "SCALA_HOME",
        "SPARK_HOME",
        "HADOOP_HOME",
        "VCPKG_ROOT",
        "EMSDK",
    ),
    *(
        "CUDA_HOME",
        "LD_LIBRARY_PATH",
        "PKG_CONFIG_PATH",
        "PYTHONPATH",
        "PERL5LIB",
        "RUBYLIB",
        "CPATH",
        "LIBRARY_PATH",
    ),
    *(
        "R_LIBS_USER",
        "JULIA_BINDIR",
        "ERL_LIBS",
        "HOMEBREW_PREFIX",
        "NIX_PROFILES",
        "MANPATH",
        "NIX_SSL_CERT_FILE",
    ),
    *(
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
    ),
)
"""Variables that name folders and files of tools, separated by colons."""
BASE_FOLDER_VARIABLES = {
    "CARGO_HOME": ("bin", "env", "config.toml"),
    "GOPATH": ("bin",),
    "BUN_INSTALL": ("bin", "install/global"),
}
"""A variable that names a folder -> the entries of that folder which belong to the tool."""
INSTALL_MARKERS = (
    *(
        "pyvenv.cfg",
        "conda-meta",
        "release",
        "VERSION",
        "go.env",
        "lib",
        "lib64",
        "libexec",
        "lib/node_modules",
    ),
    *("versions", "installs", "specifications", "autoload.php"),
)
"""Entries that show that the parent of a `bin` folder was installed together with the programs."""
CLONED_TOOLS = (
    ("libexec", "shims version plugins pyenv.d rbenv.d nodenv.d goenv.d phpenv.d share"),
    ("asdf.sh", "shims plugins completions asdf.fish"),
    ("src/make.bash", "src pkg misc"),
    ("bin/internal/engine.version", "packages version engine"),
    ("Cellar", "Cellar Caskroom opt etc share Library Homebrew"),
)
"""Tools that are installed as clones of their repositories: a file that identifies the tool,
and entries that it needs.

Its entries that INSTALL_MARKERS names are visible as well.
"""
PROGRAM_FOLDER_NAMES = frozenset({"bin", "sbin", "shims", "cmd", "condabin", "Scripts"})
"""Names of folders that hold programs."""
