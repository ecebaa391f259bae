"""`codeloop export`, `codeloop import` and `codeloop share`: write a session to a file,
or read it from one.
"""

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from codeloop.cli.options import FILE_TYPE, SESSION_ARGUMENT
from codeloop.cli.target.run_with_client import run_with_client, run_with_session
from codeloop.client.client import Client
from codeloop.kit.new_file import write_new_file
from codeloop.kit.text.terminal_text import escape_controls, escape_json_controls, one_line
from codeloop.schema.api.session_messages import SESSION_MESSAGES, ListMessages
from codeloop.schema.api.session_reports import SESSION_SHAREABLE, ShareableSession
from codeloop.schema.api.session_requests import SESSION_IMPORT, ImportSession, SessionId
from codeloop.schema.errors import CodeloopError, UsageProblem
from codeloop.schema.limits import IMPORT_BYTES
from codeloop.schema.message import Session
from codeloop.schema.wire import DECODE_ERRORS, JSON, decode_json, encode_json

if TYPE_CHECKING:
    from codeloop.app.switch.foreign_home import Program


@click.command()
@SESSION_ARGUMENT
@click.option("-o", "--output", type=FILE_TYPE, help="Write to this file instead of stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "html", "markdown", "atif"]),
    default="json",
    help="What to write.",
)
def export(name: str | None, output: Path | None, form: str) -> None:
    """Write a session as JSON (its info, and its messages with parts),
    or for people as HTML or Markdown.

    `--format atif` writes a trajectory for evaluation harnesses, as JSON.
    NAME: see `codeloop session --help`.
    """
    json_exporters = {"json": export_json, "atif": _export_atif}
    data = run_with_session(name, json_exporters.get(form) or partial(_export_page, form))
    if output is None and form not in json_exporters:
        click.echo(data.decode(), nl=False)
    elif output is None:
        click.echo(escape_json_controls(data.decode()))
    else:
        try:
            write_new_file(output, data + b"\n" if form in json_exporters else data)
        except OSError as error:
            raise click.FileError(str(output), hint=error.strerror) from error


async def _export_page(form: str, client: Client, session: Session) -> bytes:
    """Return a session as a page in HTML or Markdown."""
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    if form == "html":
        from codeloop.client.export.html import export_html as write
    else:
        from codeloop.client.export.markdown import export_markdown as write
    # Texts may hold lone surrogates, which UTF-8 can't encode.
    return write(session, messages).encode("utf-8", "backslashreplace")


async def export_json(client: Client, session: Session) -> bytes:
    """Return a session as the JSON that `codeloop import` reads."""
    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return msgspec.json.format(encode_json({"info": session, "messages": messages}), indent=2)


async def _export_atif(client: Client, session: Session) -> bytes:
    """Return a session as a trajectory in the format ATIF, as JSON."""
    from codeloop.client.export.atif import export_atif

    messages = await client.call(SESSION_MESSAGES, ListMessages(session_id=session.id))
    return msgspec.json.format(encode_json(export_atif(session, messages)), indent=2)


@click.command("import")
@click.argument(
    "file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    required=False,
)
@click.option(
    "--from",
    "program",
    type=click.Choice(["opencode", "claude", "codex", "pi", "gemini"]),
    help="Take over what you have in this agent: sessions, settings, pages, keys.",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --from: its folder, where it is not in the usual place.",
)
@click.option("--dry-run", "is_dry", is_flag=True, help="With --from: only say what there is.")
@click.option("--yes", "is_sure", is_flag=True, help="With --from: do not ask.")
def import_(
    file: Path | None, program: "Program | None", home: Path | None, is_dry: bool, is_sure: bool
) -> None:
    """Import a session from FILE, or from stdin (-),
    as written by `codeloop export` or `opencode export`;
    with --from, all that another agent has in its home.

    Nothing is overwritten: ids already in use are replaced by new ones.
    """
    if (file is None) == (program is None):
        raise UsageProblem("Name a FILE with a session, or an agent: --from claude.")
    if program is not None:
        from codeloop.cli.commands.sessions.import_home import import_home

        import_home(program, home, is_dry=is_dry, is_sure=is_sure)
        return
    assert file is not None
    document = read_document(file)
    request = ImportSession(info=document.get("info"), messages=document.get("messages"))
    result = run_with_client(lambda client: client.call(SESSION_IMPORT, request))
    for note in result.notes:
        click.echo(f"codeloop: {escape_controls(note)}", err=True)
    click.echo(
        f"Imported {result.session.id} with {result.messages} messages: {one_line(result.session.title, 70)}"
    )


def read_document(file: Path) -> JSON:
    """Read a JSON object from a file, or from stdin (`-`).

    Raises CodeloopError if it can't be read, is too large,
    or is not a JSON object (with the line and column).
    """
    name = "stdin" if str(file) == "-" else str(file)
    try:
        with sys.stdin.buffer if str(file) == "-" else file.open("rb") as stream:
            # One more byte than allowed shows that the file is too large.
            data = stream.read(IMPORT_BYTES.value + 1)
    except OSError as error:
        raise CodeloopError(f"{name} can't be read: {error.strerror}.") from error
    if len(data) > IMPORT_BYTES.value:
        raise CodeloopError(
            f"{name} is larger than {IMPORT_BYTES.value} bytes. Nothing was imported."
        )
    try:
        return decode_json(data, JSON)
    # The decoder recurses, and a hostile file may nest without end.
    except RecursionError as error:
        raise CodeloopError(f"{name} is nested too deeply. Nothing was imported.") from error
    except DECODE_ERRORS as error:
        problem = _locate_error(data, str(error))
        raise CodeloopError(
            f"{name} is not a JSON object: {problem}. Nothing was imported."
        ) from error


def _locate_error(data: bytes, message: str) -> str:
    """Return the message of a JSON decoder with a line and column instead of its byte offset.

    `message`: such as `JSON is malformed: invalid character (byte 27)`.
    """
    match = re.search(r" \(byte (\d+)\)", message)
    if match is None:
        return message if data.strip() else "it is empty"
    before = data[: int(match[1])]
    line = before.count(b"\n") + 1
    column = len(before) - before.rfind(b"\n")
    return f"{message.replace(match[0], '')}, at line {line}, column {column}"


@click.command()
@SESSION_ARGUMENT
@click.option(
    "-f", "--file", "output", type=FILE_TYPE, required=True, help="Write the page to this file."
)
def share(name: str | None, output: Path) -> None:
    """Write a session as one page that opens in any browser, without secrets, to give to others.

    The page needs no other file and asks no server. Keys, tokens and passwords of known forms are
    hidden, and so are your home directory's name and what only the model was told.
    Look through it before you give it away.

    NAME: see `codeloop session --help`.
    """
    from codeloop.web.shared_page import fill_page

    page_content = run_with_session(name, _read_shareable)
    try:
        write_new_file(output, fill_page(encode_json(page_content)))
    except OSError as error:
        raise click.FileError(str(output), hint=error.strerror) from error
    messages = sum(len(each.messages) for each in page_content.sessions)
    secrets = "1 secret was" if page_content.hidden == 1 else f"{page_content.hidden} secrets were"
    click.echo(
        f"Wrote {escape_controls(str(output))}: {messages} messages; {secrets} hidden.", err=True
    )


async def _read_shareable(client: Client, session: Session) -> ShareableSession:
    return await client.call(SESSION_SHAREABLE, SessionId(session_id=session.id))
