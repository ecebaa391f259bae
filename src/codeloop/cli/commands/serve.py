"""`codeloop serve` and `codeloop web`: serve the agent over HTTP,
to other programs or to a browser that is opened.
"""

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from codeloop import __version__
from codeloop.app.app import App
from codeloop.app.settings import ProjectSettings, Startup, find_settings
from codeloop.cli.bootstrap import list_end_signals
from codeloop.cli.options import (
    CONFIG_OPTION,
    OFFLINE_OPTION,
    PRINT_LOGS_OPTION,
    PROFILE_OPTION,
    add_options,
)
from codeloop.cli.output.streams import OutputQueue, OutputStream, open_standard_streams
from codeloop.cli.target.process_log import log_to_file
from codeloop.config.files import describe_os_error
from codeloop.config.server_credential import (
    PASSWORD_VARIABLES,
    choose_username,
    find_set_variable,
    publish_credential,
    withdraw_credential,
)
from codeloop.config.service_file import PublishedService, publish_service, withdraw_service
from codeloop.kit.desktop_programs import open_private_link
from codeloop.kit.remove_tree import temporary_folder
from codeloop.kit.text.terminal_text import escape_controls
from codeloop.schema.bounds.server import SERVER_SIGNAL
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.limits import OUTPUT_READER_TIME
from codeloop.schema.permission import Profile
from codeloop.server.guard import parse_origin
from codeloop.server.server import ListenOptions, Server, find_address
from codeloop.web import STATIC_FOLDER

DEFAULT_PORT = 4096
LOG_LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


class ServeOptions(Struct, frozen=True, kw_only=True):
    """The options of `serve` and `web`. `opens_browser`: only `web` sets it;
    `web_dir`: only `serve`.
    """

    hostname: str | None
    port: int | None
    cors: tuple[str, ...]
    password: str | None
    no_password: bool
    log_level: str | None
    trust: bool
    profile: Profile | None = None
    config: Path | None = None
    print_logs: bool = False
    opens_browser: bool = False
    web_dir: Path | None = None
    service: bool = False


class ServeOutputs(Struct, frozen=True):
    """Where the server prints, whether it opens its page in the browser,
    and whether it is the user's service.
    """

    stdout: OutputStream
    stderr: OutputStream
    opens_browser: bool = False
    is_service: bool = False


class ServerSecret(Struct, frozen=True):
    """The server's password; None: there is none. `source`: the variable or option that set it,
    "" if it is random.
    """

    password: str | None
    source: str = ""


_SERVER_OPTIONS = (
    click.option(
        "--hostname",
        metavar="HOST",
        help="Address to listen on. [default: server.hostname, else 127.0.0.1]",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        help="Port to listen on; 0: any free one. "
        f"[default: server.port, else {DEFAULT_PORT}, or a free one if that is taken]",
    ),
    click.option(
        "--cors",
        metavar="ORIGIN",
        multiple=True,
        help="Allow requests from web pages of this origin; repeatable.",
    ),
    click.option(
        "--password",
        metavar="TEXT",
        help="Password that clients must send. Other users of this machine can see it in the process list; "
        "CODELOOP_SERVER_PASSWORD is safer. [default: a random one that codeloop finds by itself]",
    ),
    click.option("--no-password", is_flag=True, help="Disable authentication."),
    click.option(
        "--log-level",
        type=click.Choice(LOG_LEVELS, case_sensitive=False),
        help="Minimum level to log. [default: log_level, else INFO]",
    ),
    CONFIG_OPTION,
    PRINT_LOGS_OPTION,
    PROFILE_OPTION,
    OFFLINE_OPTION,
    click.option(
        "--trust", is_flag=True, help="Trust this directory's configuration while the server runs."
    ),
)


@click.command()
@add_options(_SERVER_OPTIONS)
@click.option(
    "--web-dir",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Offer the files of a web app at /, in the place of codeloop's own page: a folder with an index.html.",
)
@click.option(
    "--service",
    is_flag=True,
    help="Be the service that clients of OpenCode 2 find by its file service.json.",
)
def serve(**flags: Any) -> None:
    """Serve this directory, and any other that a client names, over HTTP until stopped by a signal.

    Clients authenticate with HTTP Basic, `Bearer PASSWORD`, or the query parameter
    auth_token=BASE64(USER:PASSWORD). A browser shows the page at the printed address; the link in
    it is good once, for ten minutes.
    Exit codes: 0 stopped by a signal, 1 error, 2 usage, 130 stopped by a second signal.
    """
    _serve_until_signal(ServeOptions(**flags))


@click.command()
@add_options(_SERVER_OPTIONS)
@click.option("--no-open", is_flag=True, help="Only print the link.")
def web(*, no_open: bool, **flags: Any) -> None:
    """Show this directory's sessions, and any other's, in the browser until stopped by a signal.

    Starts a server as `codeloop serve` does, and opens its page with a link that is good once,
    for ten minutes.
    Exit codes: 0 stopped by a signal, 1 error, 2 usage, 130 stopped by a second signal.
    """
    _serve_until_signal(ServeOptions(**flags, opens_browser=not no_open))


def _serve_until_signal(serve_options: ServeOptions) -> None:
    """Start a server with these options, and serve until a signal comes.
    Raises UsageProblem, CodeloopError.
    """
    _fill_descriptors()
    secret = _find_secret(serve_options)
    configuration = {"profile": serve_options.profile} if serve_options.profile else {}
    startup = Startup(
        directory=Path.cwd(),
        config_file=serve_options.config,
        settings=configuration,
        trust=serve_options.trust,
    )
    settings = find_settings(startup)
    stdout, stderr = open_standard_streams(OutputQueue(timeout=OUTPUT_READER_TIME.seconds))
    for warning in settings.loaded.warnings:
        stderr.write(f"codeloop: {escape_controls(warning)}\n")
    listen_options = _make_listen_options(serve_options, secret, settings, stderr)
    with log_to_file(
        settings.paths.log_folder,
        serve_options.log_level or settings.config.log_level or "INFO",
        is_printed=serve_options.print_logs,
    ):
        outputs = ServeOutputs(stdout, stderr, serve_options.opens_browser, serve_options.service)
        asyncio.run(_run_server(startup, settings, listen_options, secret, outputs))


def _fill_descriptors() -> None:
    """Open /dev/null in the place of standard streams that are closed."""
    # Else a socket would get the number 1 or 2, and whatever prints to stdout or
    # stderr would write into it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(descriptor)


def _find_secret(serve_options: ServeOptions) -> ServerSecret:
    """Return the password that the options or the environment set, else a random one.
    Raises UsageProblem.
    """
    if serve_options.password is not None:
        if serve_options.no_password:
            raise UsageProblem(
                "--password and --no-password contradict each other. Leave one of them out."
            )
        if not serve_options.password:
            raise UsageProblem("--password is empty. Set one, or leave it out for a random one.")
        return ServerSecret(serve_options.password, "--password")
    if serve_options.no_password:
        return ServerSecret(None, "--no-password")
    name = find_set_variable(os.environ, PASSWORD_VARIABLES)
    return ServerSecret(os.environ[name], name) if name else ServerSecret(secrets.token_urlsafe(32))


def _make_listen_options(
    serve_options: ServeOptions,
    secret: ServerSecret,
    settings: ProjectSettings,
    stderr: OutputStream,
) -> ListenOptions:
    """Merge the options with the configuration; options take precedence.
    Raises UsageProblem, CodeloopError.
    """
    server_settings = settings.config.server
    host = (
        serve_options.hostname
        if serve_options.hostname is not None
        else server_settings.hostname or "127.0.0.1"
    )
    port = serve_options.port if serve_options.port is not None else server_settings.port
    if port is not None and not 0 <= port <= 65535:
        raise CodeloopError(
            f"server.port is {port}, which is not a port. Choose one from 0 to 65535."
        )
    username = choose_username(os.environ)
    if ":" in username:
        raise UsageProblem(
            f"The user name {username!r} contains a colon, which HTTP Basic does not allow. Choose another."
        )
    # A random password is for this machine's clients, which find it in a file.
    if secret.source in {"", "--no-password"} and find_address(host, port or 0).is_foreign:
        raise UsageProblem(
            f"Other machines can reach {host}, and whoever gets in can run any command as you. Set a long password in "
            "CODELOOP_SERVER_PASSWORD (or --password) first, or listen on 127.0.0.1."
        )
    web_folder = _find_web_folder(serve_options.web_dir)
    return ListenOptions(
        host=host,
        port=DEFAULT_PORT if port is None else port,
        accepts_other_port=port is None,
        username=username,
        password=secret.password,
        origins=_parse_origins(serve_options.cors, server_settings.cors, stderr),
        pages=STATIC_FOLDER if web_folder is None else None,
        web_dir=web_folder,
    )


def _find_web_folder(folder: Path | None) -> Path | None:
    """Return the real path of the folder of `--web-dir`; None: the option is not given.
    Raises UsageProblem.
    """
    if folder is not None and not (folder / "index.html").is_file():
        raise UsageProblem(
            f"{folder} holds no index.html, so it is not a web app. Name the folder that holds one."
        )
    return None if folder is None else folder.resolve()


def _parse_origins(
    origins: Sequence[str], config_origins: Sequence[str], stderr: OutputStream
) -> tuple[str, ...]:
    """Return the origins that may send requests.

    An invalid origin of the configuration is ignored with a warning;
    one of `--cors` raises UsageProblem.
    """
    allowed_origins: list[str] = []
    for text in config_origins:
        try:
            allowed_origins.append(parse_origin(text))
        except CodeloopError as error:
            stderr.write(f"codeloop: server.cors: {escape_controls(str(error))} Ignored.\n")
    try:
        return (*allowed_origins, *(parse_origin(text) for text in origins))
    except CodeloopError as error:
        raise UsageProblem(f"--cors: {error}") from error


async def _run_server(
    startup: Startup,
    settings: ProjectSettings,
    listen_options: ListenOptions,
    secret: ServerSecret,
    outputs: ServeOutputs,
) -> None:
    # Before the start, so that a signal that comes early ends the server as a later one does.
    stop_event = _watch_signals()
    server = Server(App(startup), listen_options)
    try:
        await server.start()
        credential_note = _publish_credential(server, secret, settings)
        if outputs.is_service:
            publish_service(
                settings.paths.home,
                os.environ,
                PublishedService(server.url, os.getpid(), __version__, secret.password),
            )
        # Programs that start a server wait for this line, which has the wording of opencode.
        outputs.stdout.write(f"opencode server listening on {server.url}\n")
        link = _make_page_link(server)
        notes = (
            credential_note,
            f"Connect with: codeloop attach {server.url}",
            f"Open in a browser: {link}",
        )
        outputs.stderr.write("".join(f"codeloop: {line}\n" for line in notes))
        # The page that leads the browser to the link stays while the server runs.
        with (
            temporary_folder("codeloop-web-") if outputs.opens_browser else nullcontext() as folder
        ):
            if folder is not None and not await open_private_link(link, folder):
                outputs.stderr.write(
                    "codeloop: There is no browser to open here. Open the link in yours.\n"
                )
            await stop_event.wait()
    finally:
        withdraw_credential(settings.paths, server.url)
        if outputs.is_service:
            withdraw_service(settings.paths.home, os.environ)
        await server.stop()


def _make_page_link(server: Server) -> str:
    """Return the address to open in a browser on this machine,
    with a sign-in link if it needs one.
    """
    # A server that listens on all addresses reports one that no browser can open.
    url = server.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    # Only our own page understands sign-in links; another web app asks for the password.
    needs_link = server.options.password is not None and server.options.pages is not None
    return url if not needs_link else f"{url}/#link={server.browsers.create_link()}"


def _watch_signals() -> asyncio.Event:
    """Return an event that the first signal sets; a second one, after SERVER_SIGNAL,
    ends the process at once.
    """
    # On Ctrl-C a terminal signals all processes in it, and `timeout` or `npm` forward their signal
    # as well. So a second signal right after the first is still the same Ctrl-C.
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    first_time = 0.0

    def end_on_signal() -> None:
        nonlocal first_time
        if not event.is_set():
            first_time = loop.time()
            event.set()
        elif loop.time() - first_time > SERVER_SIGNAL.seconds:
            raise KeyboardInterrupt

    for number in list_end_signals():
        loop.add_signal_handler(number, end_on_signal)
    return event


def _publish_credential(server: Server, secret: ServerSecret, settings: ProjectSettings) -> str:
    """Write the credential to the file where `codeloop attach` finds it,
    and return a line about it for the user.

    Raises CodeloopError if a random password can't be written, because nobody could know it.
    """
    user = server.options.username
    # A server that was killed may have left a file for this address.
    withdraw_credential(settings.paths, server.url, of_any=True)
    if secret.password is None:
        return "Authentication is disabled: everybody on this machine can run any command as you."
    try:
        file = publish_credential(settings.paths, server.url, user, secret.password)
    except OSError as error:
        if secret.source:
            reason = describe_os_error(error)
            return f"The password is set by {secret.source}; it could not be saved ({reason}). User name: {user}."
        raise CodeloopError(
            f"The random password can't be written below {settings.paths.state}: {describe_os_error(error)}. "
            "Set one in CODELOOP_SERVER_PASSWORD."
        ) from error
    if secret.source:
        return f"The password is set by {secret.source}. User name: {user}."
    return f"The password is in {file}, where `codeloop attach` finds it. User name: {user}."
