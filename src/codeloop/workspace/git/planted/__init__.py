"""What a sandboxed command leaves for git: repositories that it made, looked through before anybody else runs git."""
