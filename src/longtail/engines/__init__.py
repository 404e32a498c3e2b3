"""Where work runs. Engines are handed in and know nothing of methods."""
