"""Items of a conversation as rows of styled text. Nothing here writes to the terminal."""
