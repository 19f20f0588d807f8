"""A run or sweep as a file: JSON, CSV, a page, or as another tool writes it."""
