"""Commands about sessions: list, show, move, export, undo, stop, compare and count them;
work trees.
"""
