"""Python's parser, asked by several threads, and the grammars on a busy machine."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tree_sitter import Language

from codeloop.schema.bounds.outlines import GRAMMAR_PARSE_TIME
from codeloop.schema.wire import replace
from codeloop.workspace import syntax_tree
from codeloop.workspace.syntax_tree import parse_python, parse_tree

TEXT = "class A:\n    def f(self):\n        return [g(1, (2 + 3) * 4) for g in self.a if g]\n" * 30


def _let_others_run(*_: object) -> None:
    time.sleep(0)


def test_texts_are_parsed_by_several_threads() -> None:
    """A tree takes long enough for the garbage collector to run,
    and with it code that hands over to other threads.
    """
    before = gc.get_threshold()
    gc.callbacks.append(_let_others_run)
    gc.freeze()
    gc.set_threshold(100)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(len(tree.body) == 30 for tree in pool.map(parse_python, [TEXT] * 8))
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        gc.callbacks.remove(_let_others_run)


def test_a_text_is_parsed_however_long_its_grammar_takes_to_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load = syntax_tree._load_grammar

    def load_slowly(name: str) -> Language:
        time.sleep(0.15)
        return load(name)

    monkeypatch.setattr(syntax_tree, "GRAMMAR_PARSE_TIME", replace(GRAMMAR_PARSE_TIME, value=100))
    monkeypatch.setattr(syntax_tree, "_load_grammar", load_slowly)
    assert parse_tree("func f() { g(1) }\n" * 100, ".go") is not None
