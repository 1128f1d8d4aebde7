"""How Section 5.1 is set up: tasks, samplings, and what the paper prints."""
