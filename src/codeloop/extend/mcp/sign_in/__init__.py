"""OAuth sign-in at remote servers: storage, use and renewal of tokens, and the user's flow."""
