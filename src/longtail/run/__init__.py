"""How long work is carried out: the engine, progress, kept stages and the machine's resources.

`Run` (run.run) holds all of it and is handed whole to every function that takes long.
"""
