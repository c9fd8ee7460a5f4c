"""Other ways to write the same simulation, each as a good engineer would, one a file."""
