"""The prompt: an editor, completions, history, drafts."""
