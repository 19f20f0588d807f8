"""Following a run or a sweep: painted once for everybody, and sent as server-sent events."""
