"""Items of a conversation as rows of styled text. Pure."""
