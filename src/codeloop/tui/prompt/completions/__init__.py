"""What is typed is completed: what, where it is shown, and what is put in."""
