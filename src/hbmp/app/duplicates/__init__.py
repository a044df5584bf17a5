"""`hbmp dedup`: the items, and reports of their near-duplicates."""
