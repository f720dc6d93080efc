"""One physical effect a file."""
