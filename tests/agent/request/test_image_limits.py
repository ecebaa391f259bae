"""A request holds no more images than services take,
and what was sent once is sent again as it was.
"""

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.agent.request.image_limits import has_images, limit_images
from codeloop.model.chat import (
    AssistantModelMessage,
    ImagePiece,
    ModelInfo,
    ModelMessage,
    TextPiece,
    UserModelMessage,
)
from codeloop.model.testing.replay import SCRIPT_INFO
from codeloop.model.testing.script import ScriptedAnswer
from codeloop.schema.api.session_inputs import PROMPT, FilePartInput, Prompt, TextPartInput
from codeloop.schema.errors import APIError, APIErrorData
from codeloop.schema.limits import REQUEST_IMAGES
from codeloop.schema.wire import replace
from tests.support.scripted_project import join_texts, make_answer, make_call, open_scripted_project
from tests.workspace.files.test_image import encoded, plain

PICTURES = st.builds(lambda size: ImagePiece("image/png", "A" * size, "a.png"), st.integers(1, 9))
WORDS = st.just(TextPiece("look"))
TURNS = st.lists(
    st.one_of(
        st.builds(
            lambda pieces: UserModelMessage(tuple(pieces)),
            st.lists(st.one_of(PICTURES, WORDS), min_size=1, max_size=4),
        ),
        st.just(AssistantModelMessage((TextPiece("I see"),))),
    ),
    max_size=6,
)


def pictures(turns: tuple[ModelMessage, ...]) -> list[ImagePiece]:
    return [
        p
        for turn in turns
        if isinstance(turn, UserModelMessage)
        for p in turn.content
        if isinstance(p, ImagePiece)
    ]


@pytest.mark.slow
@given(turns=TURNS, more=TURNS, count=st.integers(0, 6), size=st.integers(0, 30))
def test_a_request_is_bounded_and_a_longer_one_begins_with_the_shorter(
    turns: list[ModelMessage], more: list[ModelMessage], count: int, size: int
) -> None:
    short = limit_images(turns, count, size)
    assert len(pictures(short)) <= count
    assert sum(len(piece.data) for piece in pictures(short)) <= size
    assert [len(turn.content) for turn in short] == [len(turn.content) for turn in turns]
    assert limit_images([*turns, *more], count, size)[: len(short)] == short
    if (
        len(pictures(tuple(turns))) <= count
        and sum(len(p.data) for p in pictures(tuple(turns))) <= size
    ):
        assert short == tuple(turns)


@pytest.mark.slow
async def test_three_hundred_images_in_one_step_leave_a_session_that_goes_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.png").write_bytes(encoded(plain(4, 4), "PNG"))
    many = make_answer(
        *(make_call("read", f"c{number}", filePath="a.png", offset=number) for number in range(300))
    )
    info = replace(SCRIPT_INFO, input=frozenset({"text", "image"}))
    answers = [many, make_answer(text="seen")]
    async with open_scripted_project(tmp_path, answers, info=info) as room:
        answer = await room.prompt()
        assert answer.stop is not None
        assert answer.stop.reason == "done"
        request = [r for r in room.model.requests if r.tools][-1]
        shown = [
            p
            for turn in request.messages
            if isinstance(turn, UserModelMessage)
            for p in turn.content
        ]
        assert sum(isinstance(piece, ImagePiece) for piece in shown) == REQUEST_IMAGES.value
        assert (
            sum(isinstance(p, TextPiece) and "left out" in p.text for p in shown)
            == 300 - REQUEST_IMAGES.value
        )


async def test_a_session_goes_on_after_a_service_has_refused_an_image(tmp_path: Path) -> None:
    refusal = APIError(
        data=APIErrorData(message="Could not process image", is_retryable=False, status_code=400)
    )
    sees = ModelInfo(
        provider_id="scripted", id="sees", name="Sees", input=frozenset({"text", "image"})
    )
    answers = [
        ScriptedAnswer(finish="error", error=refusal),
        ScriptedAnswer(text="Without it, then."),
    ]
    async with open_scripted_project(tmp_path, answers, info=sees) as it:
        image = FilePartInput(
            mime="image/png",
            url=f"data:image/png;base64,{base64.b64encode(encoded(plain(4, 4), 'PNG')).decode()}",
            filename="a.png",
        )
        first = await it.client.call(
            PROMPT, Prompt(session_id=it.session_id, parts=[TextPartInput(text="look"), image])
        )
        assert first.stop is not None
        assert first.stop.reason == "error"
        assert join_texts((await it.prompt("go on")).parts) == "Without it, then."
        before, after = (request.messages for request in it.model.requests)
        assert has_images(before)
        assert not has_images(after)
        assert "a.png" in str(after)
