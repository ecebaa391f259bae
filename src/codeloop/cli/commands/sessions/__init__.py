"""Commands about sessions: list, show, export, undo, count; work trees of their own."""
