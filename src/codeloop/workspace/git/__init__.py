"""Reading the user's git repository, and its further work trees."""
