"""The hot loops, each twice: `reference` defines what is correct, `native` is fast; same signatures.

`native` is compiled by numba on first use and cached on disk. Kernels release the interpreter lock,
so plain threads run them in parallel; none of them starts threads of its own.
"""
