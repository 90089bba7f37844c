"""What `windlass doctor` finds."""
