"""Interpulse as others install and import it: the programs that start it, and `interpulse.testing`, a broker for tests.

Owns how a process of the product is started. Never imports the product itself: only processes of the product have its
folders (`broker`, `cli`, ...) on their path.
"""
