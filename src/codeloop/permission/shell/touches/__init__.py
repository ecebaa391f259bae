"""What the words of programs name: rows of data, and how they are read."""
