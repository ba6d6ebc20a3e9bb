"""A bookie's start: cookies, missing journals, and the replay of journal frames."""
