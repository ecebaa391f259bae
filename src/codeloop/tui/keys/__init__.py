"""Keys: the commands that they run, the order of dispatch, and the user's typing rhythm."""
