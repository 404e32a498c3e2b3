"""Labels as vectors, and labels in clusters."""
