"""Checks of the doctor: pure functions from facts to verdicts."""
