"""What a session asks a person: permissions, and the model's questions."""
