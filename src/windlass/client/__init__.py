"""What enqueues jobs and asks about them."""
