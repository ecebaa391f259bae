"""A text that is edited: what a person sees as one character, chips, words, undo, wrapping. Pure."""
