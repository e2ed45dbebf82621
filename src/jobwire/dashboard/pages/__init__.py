"""One module for each page: it reads what the page shows and returns a View."""
