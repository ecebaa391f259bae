"""Commands that find something in the shown conversation: a text, or a picture."""
