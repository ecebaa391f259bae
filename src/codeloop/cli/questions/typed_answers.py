"""Reads what the user typed in answer to a permission request or to a question of the model."""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

ReplyMeaning = Literal["yes", "session", "always", "no", "words", "unclear"]

_YES_WORDS = {
    *(
        "y",
        "yes",
        "yep",
        "yeah",
        "yup",
        "ya",
        "ye",
        "aye",
        "ok",
        "okay",
        "k",
        "sure",
        "fine",
        "good",
        "right",
    ),
    *(
        "correct",
        "allow",
        "allowed",
        "accept",
        "approve",
        "approved",
        "agreed",
        "go",
        "go ahead",
        "do it",
        "do that",
        "run it",
    ),
    *(
        "once",
        "of course",
        "certainly",
        "absolutely",
        "definitely",
        "please",
        "please do",
        "sounds good",
        "looks good",
    ),
    *(
        "lgtm",
        "go for it",
        "proceed",
        "continue",
        "alright",
        "all right",
        "why not",
        "just this once",
        "this once",
    ),
}
_ALWAYS_WORDS = {
    "a",
    "always",
    "allow always",
    "always allow",
    "yes always",
    "all",
    "every time",
    "ya always",
    "forever",
}
_SESSION_WORDS = {
    "s",
    "session",
    "this session",
    "for this session",
    "allow for this session",
    "yes for this session",
    "for the session",
    "allow for the session",
}
_NO_WORDS = {
    *(
        "n",
        "no",
        "nope",
        "nah",
        "never",
        "reject",
        "deny",
        "denied",
        "refuse",
        "stop",
        "cancel",
        "abort",
        "dont",
    ),
    *(
        "do not",
        "not now",
        "no way",
        "please dont",
        "better not",
        "rather not",
        "absolutely not",
        "of course not",
    ),
}
# Words that may mean yes, but also begin instructions: "go on with the other file".
_INSTRUCTION_STARTS = {"go", "do", "please", "run", "once", "continue"}
# Words that do not change the meaning of an answer.
_POLITE_PATTERN = r"\b(please|thanks|thank you|thx|pls|just)\b"
# A word: two letters or more, of any alphabet.
_WORD_PATTERN = r"[^\W\d_]{2,}"


class OptionChoice(Struct, frozen=True):
    """The answer to a question of the model: `labels`, those chosen,
    or one text of the user's own words.

    Without labels the question is asked again, because of the `problem`; "": the line was empty.
    """

    labels: list[str] = []
    problem: str = ""


def parse_reply(line: str, *, always: bool) -> ReplyMeaning:
    """Return the meaning of the answer to a permission request.
    `always`: whether that is a possible answer.

    A number stands for the answer at that position. Two words or more that are not a known answer
    are `words` for the model. A single unknown word is `unclear`.
    """
    plain = " ".join(re.sub("['\u2019]", "", line.lower()).replace(",", " ").split()).strip(
        ' .!;:"`'
    )
    meanings: list[ReplyMeaning] = ["yes", "session", "always", "no"] if always else ["yes", "no"]
    numbers: dict[str, ReplyMeaning] = {
        str(number): meaning for number, meaning in enumerate(meanings, 1)
    }
    # "please stop" is a no; "please" alone is a yes,
    # so the text is looked up with and without such words.
    without_polite_words = " ".join(re.sub(_POLITE_PATTERN, " ", plain).split())
    for text in (plain, without_polite_words):
        if text in numbers:
            return numbers[text]
        if text in _ALWAYS_WORDS:
            return "always" if always else "unclear"
        if text in _SESSION_WORDS:
            return "session" if always else "unclear"
        if _has_only(text, _NO_WORDS):
            return "no"
        if _has_only(text, _YES_WORDS):
            return "yes"
    words = re.findall(_WORD_PATTERN, plain)
    # "yes, but only the first file" must neither allow the call nor deny it.
    if len(words) < 2 or plain.split()[0] in _YES_WORDS - _INSTRUCTION_STARTS:
        return "unclear"
    return "words"


def parse_choice(
    line: str, labels: Sequence[str], *, allows_several: bool, allows_own_words: bool
) -> OptionChoice:
    """Return the options that an answer names by their numbers or labels, or the user's own words.

    `labels`: those of the options. `allows_several`: more than one may be chosen.
    """
    text = line.strip()
    labels_by_text = {label.strip().lower(): label for label in labels}
    # A whole label first: it may contain a comma or an "and".
    if text.lower() in labels_by_text:
        return OptionChoice([labels_by_text[text.lower()]])
    pieces = [
        piece.strip().lower() for piece in re.split(r"[,;&]|\band\b|\n", text) if piece.strip()
    ]
    # Numbers may also be separated by spaces, and written as `1.`, `#1` or `1)`.
    if all(re.fullmatch(r"[\d\s.#)]+", piece) for piece in pieces):
        pieces = [number for piece in pieces for number in re.findall(r"\d+", piece)]
    chosen_labels: list[str] = []
    for piece in pieces:
        if piece.isdecimal() and labels:
            if not (len(piece) < 4 and 0 < int(piece) <= len(labels)):
                return OptionChoice(
                    problem=f"There is no option {piece[:20]}. Choose from 1 to {len(labels)}."
                )
            chosen_labels.append(labels[int(piece) - 1])
        elif piece in labels_by_text:
            chosen_labels.append(labels_by_text[piece])
        # One piece that is not an option makes the whole line the user's own words.
        elif allows_own_words:
            return OptionChoice([text])
        else:
            return OptionChoice(problem="That is not one of the options. Answer with a number.")
    chosen_labels = list(dict.fromkeys(chosen_labels))
    if len(chosen_labels) > 1 and not allows_several:
        return OptionChoice(problem="Only one can be chosen.")
    if not chosen_labels:
        return OptionChoice(problem="Answer with a number." if labels else "")
    return OptionChoice(chosen_labels)


def _has_only(text: str, vocabulary: set[str]) -> bool:
    """Return whether a text consists of words and phrases of the vocabulary alone, such as "no,
    stop".
    """
    remainder = text
    for phrase in vocabulary:
        if " " in phrase:
            remainder = re.sub(rf"\b{phrase}\b", " ", remainder)
    return bool(text) and all(word in vocabulary for word in remainder.split())
