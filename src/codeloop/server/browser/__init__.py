"""The browser UI's files, and sign-in of browsers."""
