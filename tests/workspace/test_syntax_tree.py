"""Python's parser, asked by several threads."""

import gc
import time
from concurrent.futures import ThreadPoolExecutor

from codeloop.workspace.syntax_tree import parse_python

TEXT = "class A:\n    def f(self):\n        return [g(1, (2 + 3) * 4) for g in self.a if g]\n" * 30


def _let_others_run(*_: object) -> None:
    time.sleep(0)


def test_texts_are_parsed_by_several_threads() -> None:
    """A tree takes long enough for the garbage collector to run, and with it code that hands over to other threads."""
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
