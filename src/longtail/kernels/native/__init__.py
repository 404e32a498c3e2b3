"""Compiled kernels; see the module of the same name in `reference` for what each must return."""
