"""Comparisons that another machine measures, while this one keeps plan, progress and history."""
