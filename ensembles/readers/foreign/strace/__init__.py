"""Text output of strace."""
