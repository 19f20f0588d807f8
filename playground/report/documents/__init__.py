"""What the command line prints with --json and the page exports: plain dictionaries of a published shape."""
