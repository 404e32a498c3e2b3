"""longtail tags texts with the right few labels out of thousands to millions."""
