"""What a prompt brings along: images are brought to what services take,
and a broken one never stops a session.
"""

import base64
import os
from pathlib import Path

import pytest

from codeloop.app.prompt_parts import make_parts
from codeloop.schema.api.session_inputs import FilePartInput
from codeloop.schema.errors import OperationError
from codeloop.schema.limits import ATTACHED_FILE, READ_IMAGE, READ_PDF, READ_PIXELS
from codeloop.schema.message import UserMessage
from codeloop.schema.part import FilePart, Part, TextPart
from codeloop.workspace.workspace import Workspace
from tests.store.states import session, user
from tests.tool.context import make_context
from tests.workspace.files.test_image import encoded, noise, plain

MESSAGE: UserMessage = user(session().id)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_context(tmp_path).workspace


def attach(workspace: Workspace, url: str, mime: str = "image/png") -> list[Part]:
    return make_parts(workspace, MESSAGE, FilePartInput(mime=mime, url=url))


def placed(workspace: Workspace, data: bytes, name: str = "a.png") -> str:
    (workspace.root / name).write_bytes(data)
    return (workspace.root / name).as_uri()


def inline(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def test_an_image_that_fits_is_kept_as_it_is(workspace: Workspace) -> None:
    data = encoded(plain(30, 20), "PNG")
    (from_file,) = attach(workspace, placed(workspace, data))
    (from_client,) = attach(workspace, inline(data))
    assert isinstance(from_file, FilePart)
    assert isinstance(from_client, FilePart)
    assert from_file.url == from_client.url == inline(data)
    assert (from_file.filename, from_file.message_id) == ("a.png", MESSAGE.id)


@pytest.mark.slow
@pytest.mark.parametrize("is_inline", [False, True])
def test_an_image_that_is_too_large_is_scaled_down(
    workspace: Workspace, *, is_inline: bool
) -> None:
    data = encoded(noise(READ_PIXELS.value + 400, 900), "PNG")
    assert len(data) > READ_IMAGE.value
    part, size = attach(workspace, inline(data) if is_inline else placed(workspace, data))
    assert isinstance(part, FilePart)
    assert isinstance(size, TextPart)
    assert "pixels, scaled down from " in size.text, "the model is told"
    assert part.mime == "image/jpeg"
    head, _, body = part.url.partition(",")
    assert head == "data:image/jpeg;base64"
    assert len(base64.b64decode(body)) <= READ_IMAGE.value


def test_an_image_with_the_wrong_type_gets_its_own(workspace: Workspace) -> None:
    (part,) = attach(workspace, inline(encoded(plain(3, 2), "GIF"), "image/jpeg"), "image/jpeg")
    assert isinstance(part, FilePart)
    assert part.mime == "image/gif"
    assert part.url.startswith("data:image/gif;base64,")


@pytest.mark.parametrize("data", [b"", b"\0\0text", encoded(noise(30, 20), "PNG")[:200], b"<svg/>"])
@pytest.mark.parametrize("is_inline", [False, True])
def test_a_line_stands_for_an_image_that_no_service_takes(
    workspace: Workspace, data: bytes, *, is_inline: bool
) -> None:
    (part,) = attach(workspace, inline(data) if is_inline else placed(workspace, data))
    assert isinstance(part, TextPart)
    assert part.synthetic
    assert "left out" in part.text


def test_base64_that_is_none_is_said(workspace: Workspace) -> None:
    (part,) = attach(workspace, "data:image/png;base64,!!")
    assert isinstance(part, TextPart)
    assert "base64" in part.text


def test_a_pdf_is_sent_whole(workspace: Workspace) -> None:
    (part,) = attach(workspace, placed(workspace, b"%PDF-1.7", "a.pdf"), "application/pdf")
    assert isinstance(part, FilePart)
    assert part.url == inline(b"%PDF-1.7", "application/pdf")


@pytest.mark.parametrize("mime", ["text/plain", "application/pdf"])
def test_what_is_too_large_is_refused(workspace: Workspace, mime: str) -> None:
    url = placed(workspace, b"")
    os.truncate(workspace.root / "a.png", max(ATTACHED_FILE.value, READ_PDF.value) + 1)
    with pytest.raises(OperationError, match="more than the"):
        attach(workspace, url, mime)


@pytest.mark.parametrize("mime", ["text/plain", "image/png"])
def test_a_pipe_is_refused_at_once(workspace: Workspace, mime: str) -> None:
    os.mkfifo(workspace.root / "pipe")
    with pytest.raises(OperationError, match="can't be read"):
        attach(workspace, (workspace.root / "pipe").as_uri(), mime)
