"""What follows an edit in a project: formatters and language servers, put together when the first file is edited."""
