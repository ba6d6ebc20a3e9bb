"""Stats of topics, cursors and ledgers as Apache's JSON."""
