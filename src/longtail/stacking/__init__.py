"""Several models into one: candidates of all members, what is known of each, and a ranker that scores them."""
