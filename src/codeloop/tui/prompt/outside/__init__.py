"""What comes from outside of the prompt: pastes, the clipboard, another editor."""
