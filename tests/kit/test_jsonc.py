"""JSON with comments: values as json reads them, errors with their place,
positions of every value.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeloop.kit.jsonc import JsoncError, Position, _Parser, parse_jsonc

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
NOISE = st.sampled_from(
    [" ", "\n", "\t", '// a comment, with [brackets] "quotes"\n', "/* one { */", "/**/\r\n", ""]
)


def noisy(value: Any, draw: Any) -> str:
    def gap() -> str:
        return draw(NOISE)

    if isinstance(value, dict):
        body = ",".join(f"{gap()}{json.dumps(k)}{gap()}:{noisy(v, draw)}" for k, v in value.items())
        return (
            gap()
            + "{"
            + body
            + draw(st.sampled_from(["", ","] if value else [""]))
            + gap()
            + "}"
            + gap()
        )
    if isinstance(value, list):
        body = ",".join(noisy(item, draw) for item in value)
        return (
            gap()
            + "["
            + body
            + draw(st.sampled_from(["", ","] if value else [""]))
            + gap()
            + "]"
            + gap()
        )
    return gap() + json.dumps(value) + gap()


@pytest.mark.slow
@given(values, st.booleans(), st.sampled_from([None, 1, 4]))
def test_plain_json_is_read_as_the_standard_library_reads_it(
    value: Any, is_ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert parse_jsonc(text).value == json.loads(text)
    assert _Parser(text, 128).parse_document() == json.loads(text)


@pytest.mark.slow
@given(values, st.data())
def test_comments_and_trailing_commas_change_no_value(value: Any, data: st.DataObject) -> None:
    assert parse_jsonc(noisy(value, data.draw)).value == value


@given(st.text(alphabet="{}[],:\"\\/*\n 01-.eE+tfnu'ax", max_size=30))
def test_any_text_gives_a_value_or_an_error_with_a_place_in_it(text: str) -> None:
    place = None
    try:
        assert parse_jsonc(text).value == _Parser(text, 128).parse_document()
    except JsoncError as error:
        place = error.position
    if place is not None:
        lines = text.split("\n")
        assert 1 <= place.line <= len(lines)
        assert 1 <= place.column <= len(lines[place.line - 1]) + 1
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", "1:1", "expected a value, found the end of the text"),
        ("// only this", "1:13", "expected a value"),
        ('{"a": 1\n "b": 2}', "2:2", "expected ',' or '}', found '\"'"),
        ('{"a": [1, 2', "1:12", "expected ',' or ']', found the end"),
        ('{"a": 1,\n  "mod', "2:3", "closing double quote"),
        ("{a: 1}", "1:2", "expected a key in double quotes or '}', found 'a'"),
        ("{'a': 1}", "1:2", "expected a key in double quotes"),
        ("{\"a\": 'b'}", "1:7", "expected double quotes"),
        ('{"a" 1}', "1:6", "expected ':' after the key"),
        ('{"a": undefined}', "1:7", "expected a value, found 'undefined'"),
        ('{"a": NaN}', "1:7", "expected a value, found 'NaN'"),
        ("[,]", "1:2", "expected a value"),
        ("[1,,]", "1:4", "expected a value"),
        ("[1] x", "1:5", "expected nothing more"),
        ("[01]", "1:3", "expected ',' or ']'"),
        ('\n\n ["a\nb"]', "3:5", "no line break or control character"),
        (r'["a\q"]', "1:4", "a valid escape"),
        (r'["\ud800"]', "1:2", "surrogate pair"),
        ("[1 /* never closed", "1:4", "expected '*/'"),
        ("[" * 200, "1:129", "at most 128 levels"),
        ("[" * 200 + "]" * 200, "1:129", "at most 128 levels"),
        ("[" * 100_000 + "]" * 100_000, "1:129", "at most 128 levels"),
        ("9" * 5000, "1:1", "fewer digits"),
    ],
)
def test_an_error_names_its_place_and_what_was_expected(
    text: str, place: str, expected: str
) -> None:
    with pytest.raises(JsoncError) as caught:
        parse_jsonc(text)
    assert str(caught.value.position) == place
    assert expected in str(caught.value)


def test_every_key_and_value_has_its_position() -> None:
    document = parse_jsonc('{ // first\n  "a": {"b.c": [1,\n   "x",]},\n  "ä":\ttrue,\n}')
    assert document.value == {"a": {"b.c": [1, "x"]}, "ä": True}
    assert document.find_position(()) == Position(1, 1)
    assert document.find_position(("a",)) == Position(2, 8)
    assert document.find_position(("a",), of_key=True) == Position(2, 3)
    assert document.find_position(("a", "b.c", 1)) == Position(3, 4)
    assert document.find_position(("ä",)) == Position(4, 8)


def test_a_missing_path_gives_the_place_of_what_is_around_it() -> None:
    document = parse_jsonc('{\n "a": {"b": 1}}')
    assert document.find_position(("a", "x", 3)) == Position(2, 7)
    assert document.find_position(("nothing",)) == Position(1, 1)


def test_of_equal_keys_the_last_one_counts() -> None:
    document = parse_jsonc('{"a": 1,\n "a": 2,}')
    assert document.value == {"a": 2}
    assert document.find_position(("a",)) == Position(2, 7)


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_jsonc('\ufeff{"a": 1}').value == {"a": 1}


def test_a_wide_document_is_not_a_deep_one() -> None:
    assert parse_jsonc(json.dumps([[n] for n in range(500)])).value == [[n] for n in range(500)]
