"""Where a person types: the editor, its completion, history and drafts."""
