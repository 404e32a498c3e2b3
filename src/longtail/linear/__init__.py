"""One-vs-rest linear classifiers over label clusters, and the tree that recalls and ranks with them."""
