"""What commands see of a home directory, and of other places where people keep things: the project,
tools, no keys.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codeloop.schema.config import SandboxConfig
from codeloop.schema.wire import replace
from codeloop.workspace.process.shells import CommandResult, ShellCommand
from codeloop.workspace.sandbox.policy import PolicyInput, SandboxGrants
from tests.workspace.sandbox.conftest import SECRET, Attacked

SECRETS = (
    *(
        "other/.env",
        "keys/deploy.pem",
        ".pulumi/credentials.json",
        ".config/pypoetry/auth.toml",
        ".composer/auth.json",
    ),
    *(
        ".terraform.d/credentials.tfrc.json",
        ".fly/config.yml",
        ".supabase/access-token",
        ".netlify/config.json",
    ),
    *(
        ".config/netlify/config.json",
        ".local/share/com.vercel.cli/auth.json",
        ".railway/config.json",
        "a b/list",
    ),
    *(
        ".gemini/oauth_creds.json",
        ".config/solana/id.json",
        ".bitcoin/wallet.dat",
        ".config/NuGet/NuGet.Config",
    ),
    *(
        ".local/share/uv/credentials/credentials.toml",
        ".ivy2/.credentials",
        ".sentryclirc",
        ".msmtprc",
        ".authinfo",
    ),
    *(
        ".config/filezilla/sitemanager.xml",
        ".local/share/nvim/shada/main.shada",
        ".local/state/bash/history",
    ),
    *(
        ".config/mozilla/firefox/p/key4.db",
        ".cargo/credentials.toml",
        ".gem/credentials",
        ".hex/hex.config",
    ),
    *(
        ".gradle/gradle.properties",
        ".sdkman/etc/config",
        ".dotnet/corefx/cryptography/x509stores/my/a.pfx",
    ),
    *(
        ".config/gcloud/credentials.db",
        "Documents/letter.txt",
        ".config/rclone/rclone.conf",
        ".rustup/.env",
    ),
    *(
        ".cache/huggingface/stored_tokens",
        ".luarocks/upload_config.lua",
        ".spack/mirrors.yaml",
        ".cpan/CPAN/MyConfig.pm",
    ),
    *(".pub-cache/credentials.json", ".local/share/gem/credentials", ".local/lib/tool/.dev.vars"),
    *(
        ".local/lib/tool/.env",
        ".pyenv/id_rsa",
        ".nvm/.npmrc",
        ".android/adbkey",
        ".cache/mozilla/firefox/a",
    ),
)
TOKENS = {
    ".npmrc": f"//registry.npmjs.org/:_authToken={SECRET}",
    ".nvm/.npmrc": f"_auth = {SECRET}",
    ".nvm/versions/node/v22.1.0/etc/npmrc": f"//registry.npmjs.org/:_authToken={SECRET}",
    ".m2/settings.xml": f"<server><password>{SECRET}</password></server>",
    ".config/pip/pip.conf": f"[global]\nproxy = https://ann:{SECRET}@example.com/simple",
    ".gitconfig": f"[http]\n\textraheader = AUTHORIZATION: basic {SECRET}",
    ".bundle/config": f'---\nBUNDLE_GITHUB__COM: "{SECRET}"',
    ".cargo/config.toml": f'[registries.a]\ntoken = "{SECRET}"',
    ".config/uv/uv.toml": f'[[index]]\nurl = "https://u:{SECRET}@example.com"',
    ".yarnrc.yml": f"npmAuthToken: {SECRET}",
    ".condarc": f"channels:\n  - https://u:{SECRET}@example.com/t",
    ".mambarc": f"channels:\n  - https://conda.example.com/t/{SECRET}/main",
    ".pip/pip.conf": f"[global]\nproxy = https://{SECRET[:9]}@example.com/{SECRET}",
    ".config/go/env": f"GOPROXY=https://{SECRET}@example.com",
    ".bazelrc": f"build --remote_header=Authorization=Bearer {SECRET}",
    ".actrc": f"-s DEPLOY={SECRET}",
    ".Rprofile": f'Sys.setenv(GITHUB_PAT="{SECRET}")',
    ".irbrc": f'ENV["STRIPE_SECRET"] ||= "{SECRET}"',
    ".config/mise/config.toml": f'[env]\nSTRIPE_KEY = "{SECRET}"',
    ".config/composer/config.json": f'{{"config": {{"bearer": {{"example.com": "{SECRET}"}}}}}}',
    ".local/share/pipx/venvs/a/pipx_metadata.json": f'{{"pip_args": ["--proxy=https://u:{SECRET}@example.com"]}}',
    ".local/share/uv/tools/a/uv-receipt.toml": f'index = [{{ url = "https://u:{SECRET}@example.com" }}]',
    ".virtualenvs/a/pip.conf": f"[global]\nproxy = https://u:{SECRET}@example.com",
    "miniconda3/.condarc": f"channels:\n  - https://u:{SECRET}@example.com/t",
    ".pyenv/.git/config": f'[remote "origin"]\n\turl = https://u:{SECRET}@example.com/x',
}
PLAIN = {
    ".gitconfig": "[user]\n\tname = plain words\n[credential]\n\thelper = store\n",
    ".npmrc": "//registry.npmjs.org/:_authToken=${NPM_TOKEN}\nregistry=https://npm-registry.example.com/plain\n",
    ".config/pip/pip.conf": "[global]\nproxy = https://example.com/plain\n",
    ".config/git/ignore": "plain\n",
    ".cargo/config.toml": "[build]\njobs = 2 # plain\n",
    ".bundle/config": '---\nBUNDLE_BUILD__NOKOGIRI: "plain"\n',
    ".m2/settings.xml": "<settings><localRepository>plain</localRepository></settings>\n",
    ".bazelrc": "# Basic settings, plain\nbuild --jobs=4\n",
}


def put(home: Path, name: str, text: str = SECRET) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def run(
    it: Attacked, text: str, config: SandboxConfig, environment: dict[str, str] | None = None
) -> CommandResult:
    place = replace(it.place, environment={**it.place.environment, **(environment or {})})
    context = replace(it.context, session=f"{text} {environment}", environment=place.environment)
    it.shells._work_trees._policy_makers.clear()
    policy = it.shells.make_policy(place, replace(config, network="off"))
    return await it.shells.run(context, ShellCommand(text, 120, None, policy), lambda _: None)


@pytest.mark.slow
async def test_no_secret_of_a_home_is_read_wherever_it_lies(it: Attacked) -> None:
    for name in SECRETS:
        put(it.home, name)
    for name, text in TOKENS.items():
        put(it.home, name, text)
    command = f"grep -rasoh {SECRET[:14]}.* . {it.home} /proc/self/root{it.home} | head; "
    command += "; ".join(f"cat '{it.home / name}'" for name in (*SECRETS, *TOKENS))
    outcome = await run(it, command, SandboxConfig())
    assert SECRET not in outcome.output
    assert not any(note.endswith("put back") for note in outcome.notes)


@pytest.mark.slow
async def test_settings_without_a_token_are_read(it: Attacked) -> None:
    for name, text in PLAIN.items():
        put(it.home, name, text)
    outcome = await run(
        it, f"cd {it.home} && cat {' '.join(PLAIN)}; git config --global user.name", SandboxConfig()
    )
    assert outcome.output == "".join(PLAIN.values()) + "plain words\n"


@pytest.mark.slow
async def test_settings_that_are_links_are_read_where_they_lead(it: Attacked) -> None:
    put(it.home, "dotfiles/gitconfig", "[user]\n\tname = linked\n")
    (it.home / ".gitconfig").symlink_to("dotfiles/gitconfig")
    (it.home / "dotfiles/tools/bin").mkdir(parents=True)
    put(it.home, "dotfiles/secret")
    (it.home / ".local").mkdir(exist_ok=True)
    (it.home / ".local/bin").symlink_to(it.home / "dotfiles/tools/bin")
    put(it.home, "dotfiles/tools/bin/tool", "#!/bin/sh\necho works\n").chmod(0o755)
    outcome = await run(
        it,
        "git config --global user.name; ~/.local/bin/tool; cat ~/dotfiles/secret",
        SandboxConfig(),
    )
    assert outcome.output.startswith("linked\nworks\n")
    assert SECRET not in outcome.output


@pytest.mark.slow
async def test_what_the_user_names_is_read_and_what_is_missing_is_said(it: Attacked) -> None:
    named = put(it.home, "shared/notes", "words\n")
    outcome = await run(it, f"cat {named}", SandboxConfig())
    assert outcome.code == 1
    if it.backend != "landlock":
        assert outcome.notes[0].startswith(
            "blocked: read of ~/shared/notes, which sandboxed commands don't see"
        )
    config = SandboxConfig(readable=["~/shared"], hidden=["~/shared/not"])
    put(it.home, "shared/not/this")
    shown = await run(it, f"cat {named}; echo x >> {named}; cat {it.home}/shared/not/this", config)
    assert shown.output.startswith("words\n")
    assert SECRET not in shown.output
    assert named.read_text() == "words\n"


@pytest.mark.slow
async def test_a_file_of_the_home_that_was_allowed_is_read_by_that_command(it: Attacked) -> None:
    named = put(it.home, "other/.env")
    assert (await it.run(f"cat {named}", SandboxGrants(readable=(named,)))).output == SECRET
    assert SECRET not in (await it.run(f"cat {named}")).output


async def test_what_tools_leave_in_the_home_is_private_and_is_there_for_the_next_command(
    it: Attacked,
) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock can't put another folder in the place of the home")
    before = sorted(it.home.iterdir())
    first = await it.run(
        "mkdir -p ~/.tool/a && echo kept > ~/.tool/a/b && echo x > ~/.foo && ls -a ~"
    )
    assert first.code == 0, first.output
    assert (await it.run("cat ~/.tool/a/b")).output == "kept\n"
    assert sorted(it.home.iterdir()) == before


@pytest.mark.slow
async def test_a_link_in_the_private_home_leads_nowhere_when_the_next_sandbox_is_made(
    it: Attacked,
) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock can't put another folder in the place of the home")
    victim = it.home.parent / "elsewhere"
    await it.run(
        f"mkdir -p {victim}; ln -s {victim} ~/.local; ln -s {victim} ~/.config; ln -s {victim} ~/.gitconfig"
    )
    put(it.home, ".local/bin/tool", "#!/bin/sh\n")
    put(it.home, ".config/git/ignore", "plain\n")
    put(it.home, ".gitconfig", "[user]\n\tname = A\n")
    it.shells._work_trees._policy_makers.clear()
    outcome = await it.run(
        "cat ~/.config/git/ignore; git config --global user.name; ls ~/.local/bin"
    )
    assert outcome.output == "plain\nA\ntool\n"
    assert list(victim.iterdir()) == []


async def test_with_the_home_as_the_project_secrets_are_hidden_by_name(it: Attacked) -> None:
    if it.backend == "landlock":
        pytest.skip("Landlock can't hide a file in a project, and says so")
    place = PolicyInput(
        it.home, it.home, it.place.scratch, it.place.environment, it.place.own_folders
    )
    put(it.home, "plain.txt", "plain\n")
    put(it.home, ".aws/credentials")
    whole = it._replace(
        place=place, root=it.home, context=replace(it.context, session="ses_2", directory=it.home)
    )
    outcome = await whole.run("cat plain.txt .aws/credentials .ssh/id_ed25519; echo x > made")
    assert "plain\n" in outcome.output
    assert SECRET not in outcome.output
    assert (it.home / "made").exists()


@pytest.mark.slow
async def test_a_virtual_environment_anywhere_is_whole(it: Attacked, tmp_path: Path) -> None:
    for folder in (tmp_path / "somewhere/venv", it.home / "work/other/.venv", it.home / "envs/a b"):
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        site = next((folder / "lib").glob("python*/site-packages"))
        (site / "mine.py").write_text("word = 'installed'\n")
        put(folder.parent, ".env")
        path = f"{folder}/bin{os.pathsep}{it.place.environment['PATH']}"
        shown = await run(
            it,
            "python -c 'import mine, sys; print(mine.word, sys.prefix)'",
            SandboxConfig(),
            {"PATH": path},
        )
        assert shown.output == f"installed {folder}\n"
        assert (
            SECRET
            not in (
                await run(it, f"cat '{folder.parent}/.env'", SandboxConfig(), {"PATH": path})
            ).output
        )


@pytest.mark.slow
async def test_what_links_of_the_path_lead_to_is_there(it: Attacked) -> None:
    tool = put(
        it.home,
        "opt/tool-1.2/bin/tool",
        '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../lib/words"\n',
    )
    tool.chmod(0o755)
    put(it.home, "opt/tool-1.2/lib/words", "words\n")
    package = put(
        it.home,
        "node/lib/node_modules/a/cli.sh",
        '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../b/c"\n',
    )
    package.chmod(0o755)
    put(it.home, "node/lib/node_modules/b/c", "needed\n")
    (it.home / "mybin").mkdir()
    (it.home / "mybin/tool").symlink_to(tool)
    (it.home / "mybin/a").symlink_to(package)
    put(it.home, "opt/tool-1.2/.env")
    environment = {"PATH": f"{it.home}/mybin{os.pathsep}{it.place.environment['PATH']}"}
    outcome = await run(it, "tool; a; cat ~/opt/tool-1.2/.env", SandboxConfig(), environment)
    assert outcome.output.startswith("words\nneeded\n")
    assert SECRET not in outcome.output


async def test_other_terminals_are_out_of_reach(it: Attacked) -> None:
    ours, theirs = os.openpty()
    try:
        name = os.ttyname(theirs)
        os.write(ours, b"typed\n")
        outcome = await it.run(
            f"(timeout 1 head -c 5 {name}; echo x > {name}; ls -l {name}) < /dev/null"
        )
        assert "typed" not in outcome.output
        os.write(theirs, b"end")
        seen = b""
        while not seen.endswith(b"end"):
            seen += os.read(ours, 100)
        assert b"x" not in seen
    finally:
        os.close(ours)
        os.close(theirs)


async def test_folders_deeper_than_a_program_can_call_itself_stop_no_later_command(
    it: Attacked,
) -> None:
    code = "import os, sys; os.chdir(sys.argv[1]); [(os.mkdir('d'), os.chdir('d')) for _ in range(1500)]"
    for place in ("$HOME", "/tmp", "$PWD"):
        await it.run(f'python3 -c "{code}" {place}')
        assert (await it.run("echo there")).output == "there\n"
