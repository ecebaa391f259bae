"""Commands about sessions: list, show, export, undo, count."""
