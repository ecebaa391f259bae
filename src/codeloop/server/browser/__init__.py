"""What the server does for pages in a browser: their files, and how a browser signs in."""
