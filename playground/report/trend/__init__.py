"""A preset's headline figure across its runs."""
