"""Do the sides give the same answers, and are they right?"""
