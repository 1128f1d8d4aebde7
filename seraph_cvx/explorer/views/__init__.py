"""What the page shows, each a function of its state: controls, messages, pictures, tabs."""
