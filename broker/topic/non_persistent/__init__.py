"""Non-persistent topics: messages go to connected consumers with permits, or are dropped."""
