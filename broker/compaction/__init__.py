"""Topic compaction: of each key the newest message, in a ledger beside the topic's log. Formats and steps are Apache's."""
