"""Work in a process of its own, under limits of time and memory."""
