"""Rows of package managers, of containers, and of the task runners that belong to them."""

from codeloop.shell.program_readers import make_settings_reader
from codeloop.shell.program_row import ProgramRow, list_by_name

_BUILDAH_REMOTE = """
push
image,manifest,compose,buildx push
build,buildx + --push
stack deploy,rm
service create,update,rm,scale,rollback
"""
_MVN_REMOTE = "** deploy,*:deploy,*:deploy-file,*release:perform,*release:prepare,*jib:build"

_ROWS = {
    "anaconda luarocks": ProgramRow(remote="upload"),
    "ansible-galaxy": ProgramRow(remote="** publish,import,delete"),
    "apt apt-get brew launchctl snap": ProgramRow(groups=""),
    "asdf devcontainer pyenv": ProgramRow(runs_after="exec; x"),
    "buildah": ProgramRow(remote=_BUILDAH_REMOTE),
    "bun": ProgramRow(
        runs_after="x",
        is_interpreter=True,
        groups="run x",
        remote="publish ! --dry-run",
        checks="test: test; build: build",
        language="js",
        enters="--cwd",
        tasks="run run-script task",
    ),
    "bundle rbenv": ProgramRow(runs_after="exec; x", groups=""),
    "bunx dlx pnpx": ProgramRow(runs_after="*"),
    "cabal": ProgramRow(
        remote="upload",
        checks="test: test, v2-test, new-test; build: build, v2-build, new-build",
    ),
    "cachix dvc": ProgramRow(remote="push"),
    "cargo": ProgramRow(
        language="rust",
        enters="-C",
        picks="-p --package",
        options="-C=- -q -v -vv -Z=- --color=- --config=- --frozen --locked --offline --quiet --verbose",
        groups="run test",
        remote="""
publish ! -n --dry-run
yank
owner + -a --add -r --remove
release + -x --execute
smart-release + -e --execute
""",
        checks="""
test: test, t, nextest run, miri, tarpaulin, llvm-cov; lint: clippy; format: fmt --check; build: check,
c, build, b
""",
    ),
    "changeset elm pkg-pr-new wasm-pack": ProgramRow(remote="publish"),
    "charmcraft": ProgramRow(remote="upload,release"),
    "clean-publish": ProgramRow(remote="**"),
    "clj clojure": ProgramRow(remote="** deploy", checks="test: -M:test, -X:test"),
    "cmake": ProgramRow(
        groups="",
        checks="test: --build test, --build check; build: --build",
        narrows="--target",
        enters="--build",
    ),
    "composer": ProgramRow(groups="run-script", checks="test: test", tasks="run run-script task"),
    "conda": ProgramRow(runs_after="run", groups="env", remote="upload"),
    "coverage dotenvx mamba micromamba op pipx": ProgramRow(runs_after="run"),
    "crane": ProgramRow(remote="push,copy,cp,delete,tag,append,mutate"),
    "dart": ProgramRow(
        remote="pub publish ! -n --dry-run",
        checks="test: test; lint: analyze; format: format --set-exit-if-changed",
    ),
    "deno": ProgramRow(
        is_interpreter=True,
        groups="task",
        remote="publish ! --dry-run",
        language="js",
        checks="test: test; lint: lint; format: fmt --check; types: check",
        tasks="run run-script task",
    ),
    "devbox pixi": ProgramRow(runs_after="run", tasks="run r"),
    "docker": ProgramRow(
        options="""
-c=- -D -H=- -l=- --config=- --context=- --debug --host=- --log-level=- --tls --tlsverify
""",
        runs_after="exec; run",
        is_container=True,
        groups="builder buildx compose container image network system volume",
        remote=_BUILDAH_REMOTE,
    ),
    "docker-compose": ProgramRow(runs_after="exec; run"),
    "dotnet": ProgramRow(
        groups="tool",
        remote="nuget push,delete",
        checks="test: test; format: format --verify-no-changes; build: build",
    ),
    "electron-builder": ProgramRow(remote="+ --publish -p"),
    "fastlane": ProgramRow(remote="** deliver,pilot,supply,release,upload*,deploy*"),
    "flit jsr": ProgramRow(remote="publish ! --dry-run"),
    "flutter": ProgramRow(
        groups="",
        remote="pub publish ! -n --dry-run",
        checks="test: test; lint: analyze; build: build",
    ),
    "gem": ProgramRow(groups="", remote="push,yank,owner"),
    "gleam": ProgramRow(remote="publish", checks="test: test; types: check; build: build"),
    "go": ProgramRow(
        options="-C=-",
        read_words=make_settings_reader(r"env -(w|u)\b", "~/.config/go/env"),
        groups="mod tool work",
        checks="test: test; lint: vet; build: build",
        language="go",
        enters="-C",
    ),
    "goreleaser": ProgramRow(remote="release,publish ! --snapshot"),
    "gradle gradlew": ProgramRow(
        tasks="jvm",
        language="jvm",
        enters="-p --project-dir",
        groups="",
        remote="""
** publish,*:publish,publishPlugins,publish*Repository,publishToSonatype,publishToMavenCentral ! -m --dry-run
** publishAndReleaseToMavenCentral,uploadArchives,jib,*:jib,closeAndRelease* ! -m --dry-run
""",
    ),
    "hatch": ProgramRow(
        runs_after="run",
        remote="publish ! --dry-run",
        checks="test: test; lint: fmt --check; build: build",
        tasks="run r",
    ),
    "hf huggingface-cli": ProgramRow(remote="upload,upload-large-folder,repo,delete"),
    "just task": ProgramRow(groups="", tasks="*"),
    "ko": ProgramRow(
        remote="""
publish,build,resolve ! --local -L --push=false
apply
"""
    ),
    "lein": ProgramRow(remote="deploy", checks="test: test"),
    "lerna": ProgramRow(remote="publish", tasks="run run-script ?"),
    "make": ProgramRow(
        operands="n",
        enters="-C --directory",
        options="""
-C=n --directory=n -f=r --file=r --makefile=r -I=n --include-dir=n -o=- -W=- -j? -l? --jobs?
--eval=-
""",
        groups="",
        tasks="*",
    ),
    "maturin": ProgramRow(
        remote="""
publish ! --dry-run
upload
"""
    ),
    "mise": ProgramRow(runs_after="exec; x", groups="", tasks="run r"),
    "mix": ProgramRow(
        groups="",
        language="elixir",
        remote="hex.publish,hex.retire ! --dry-run",
        checks="test: test; lint: credo; format: format --check-formatted; types: dialyzer; build: compile",
    ),
    "mvn mvnd mvnw": ProgramRow(groups="", remote=_MVN_REMOTE, tasks="jvm", language="jvm"),
    "mypy": ProgramRow(groups="", checks="types"),
    "nerdctl": ProgramRow(runs_after="exec; run", is_container=True, remote=_BUILDAH_REMOTE),
    "nimble": ProgramRow(remote="publish", checks="test: test"),
    "np": ProgramRow(remote="! --preview"),
    "npm": ProgramRow(
        options="""
-g -s -w=- --global --json --prefix=- --registry=- --silent --userconfig=- --workspace=-
--workspaces
""",
        read_words=make_settings_reader(r"(config|c) (set|delete|rm|edit)\b|set\b", "~/.npmrc"),
        runs_after="dlx; exec; x",
        groups="exec run run-script",
        remote="""
publish,unpublish ! --dry-run
deprecate,undeprecate
dist-tag,dist-tags add,rm,set
owner,access,team,token,org,hook add,create,destroy,grant,public,restricted,revoke,rm,set
stage publish
""",
        checks="test: test, t, tst",
        language="js",
        enters="--prefix -C",
        picks="-w --workspace",
        tasks="run run-script task",
    ),
    "npx": ProgramRow(runs_after="*", groups="tsx"),
    "nuget": ProgramRow(remote="push,delete"),
    "nvm": ProgramRow(runs_after="exec", groups=""),
    "nx": ProgramRow(
        groups="run",
        remote="release ! --dry-run -d",
        checks="""
test: run-many test, affected test; lint: run-many lint, affected lint; build: run-many build,
affected build
""",
        tasks="run run-script ?",
    ),
    "opam": ProgramRow(remote="publish", runs_after="exec"),
    "oras": ProgramRow(remote="push,attach,copy,cp"),
    "ovsx vsce": ProgramRow(remote="publish,unpublish"),
    "pdm": ProgramRow(runs_after="run", groups="run", remote="publish ! --dry-run", tasks="run r"),
    "php": ProgramRow(is_interpreter=True, groups=""),
    "pip pip3": ProgramRow(
        options="-V --version",
        risky="""
-q -v --cache-dir=- --isolated --log=- --proxy=- --python=- --quiet --require-virtualenv --timeout=-
""",
        read_words=make_settings_reader(
            r"config (set|unset|edit)\b", "~/.config/pip/pip.conf", ("-t", "-d")
        ),
        reads="max:0",
        groups="cache",
        subcommands={
            "list": ProgramRow(
                options="-e -l --editable --exclude=- --exclude-editable --format --local --not-required --user",
                reads="",
            ),
            "show": ProgramRow(options="-f -v --files --verbose", reads=""),
        },
    ),
    "pipenv": ProgramRow(runs_after="run", groups="run", tasks="run r"),
    "pnpm": ProgramRow(
        options="-C=- -F=- -r -w --dir=- --filter=- --recursive --silent --workspace-root",
        read_words=make_settings_reader(r"(config|c) (set|delete|rm)\b|set\b", "~/.config/pnpm/rc"),
        runs_after="*; dlx; exec; x",
        groups="dlx exec run",
        remote="""
publish,unpublish ! --dry-run
deprecate,undeprecate
""",
        checks="test: test, t, tst",
        language="js",
        enters="-C --dir",
        picks="-F --filter",
        tasks="run run-script ?",
    ),
    "pod": ProgramRow(remote="trunk push,delete,deprecate"),
    "podman": ProgramRow(
        runs_after="exec; run",
        is_container=True,
        groups="compose container image",
        remote=_BUILDAH_REMOTE,
    ),
    "poetry": ProgramRow(
        read_words=make_settings_reader(r"config \S+ \S", "~/.config/pypoetry/config.toml"),
        runs_after="run",
        groups="run self",
        remote="publish ! --dry-run",
        checks="build: build",
        tasks="run r",
    ),
    "pre-commit": ProgramRow(groups="", checks="lint: run"),
    "rake": ProgramRow(groups="", remote="release", tasks="*"),
    "release-it": ProgramRow(remote="! --dry-run"),
    "ruff": ProgramRow(groups="", checks="lint: check; format: format --check, format --diff"),
    "rustup": ProgramRow(runs_after="run", groups="component target toolchain"),
    "rush rushx": ProgramRow(tasks="?"),
    "rye": ProgramRow(
        runs_after="run",
        remote="publish ! --dry-run",
        checks="test: test; lint: lint",
        language="python",
        tasks="run r",
    ),
    "sbt": ProgramRow(
        groups="",
        language="jvm",
        remote="** publish,publishSigned,release,sonatype*,*/publish",
        checks="test: test, testOnly; build: compile",
    ),
    "semantic-release": ProgramRow(remote="! --dry-run -d"),
    "setup.py": ProgramRow(remote="** upload,register", checks="test: test; build: build"),
    "skopeo": ProgramRow(remote="copy,delete,sync"),
    "snapcraft": ProgramRow(remote="upload,push,release,close"),
    "stack": ProgramRow(
        groups="", remote="upload", checks="test: test, build --test; build: build"
    ),
    "swift": ProgramRow(groups="package", checks="test: test; build: build"),
    "systemctl": ProgramRow(
        options="""
-H=- -M=- -n=- -o=- -p=- -q -t=- --host=- --machine=- --no-pager --now --quiet --root=- --system
--user
""",
        groups="",
    ),
    "tox": ProgramRow(groups="", checks="test", tasks="*", modes="run r p run-parallel"),
    "turbo": ProgramRow(groups="", tasks="run run-script ?"),
    "twine": ProgramRow(remote="upload,register"),
    "uv": ProgramRow(
        options="""
-n -q -v --cache-dir=- --color=- --config-file=- --directory=- --no-cache --offline --project=-
--quiet
""",
        runs_after="run; tool run",
        groups="pip run tool",
        remote="publish ! --dry-run",
        checks="build: build",
        tasks="run r",
    ),
    "uvx": ProgramRow(runs_after="*", groups=""),
    "xcodebuild": ProgramRow(groups="", checks="test: test; build: build"),
    "yarn": ProgramRow(
        options="-s --cwd=- --silent",
        read_words=make_settings_reader(r"config (set|delete|unset)\b", "~/.yarnrc"),
        runs_after="*; dlx; exec; x",
        groups="dlx run workspace",
        remote="""
publish
npm publish ! --dry-run -n
npm tag add,remove
workspaces foreach ** publish
workspace * publish
""",
        checks="test: test, t, tst",
        language="js",
        enters="--cwd",
        picks="workspace",
        tasks="run run-script ?",
    ),
    "zig": ProgramRow(
        groups="", checks="test: test, build test; format: fmt --check; build: build"
    ),
}
PROGRAMS = list_by_name(_ROWS)
