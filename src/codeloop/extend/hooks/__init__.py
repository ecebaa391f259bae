"""What extensions are asked, and what people's own programs are run for, at points of a session."""
