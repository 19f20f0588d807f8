"""A run or a sweep -> figures, sentences, charts and documents."""
