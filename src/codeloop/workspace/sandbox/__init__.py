"""What runs the commands of a work tree, and the sandbox that it runs them in."""
