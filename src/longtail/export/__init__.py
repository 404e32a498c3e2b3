"""Models out into the world: as an ONNX graph that runs without longtail, and to and from the Hugging Face hub.

export_onnx(model, folder)     the network of a model, its tokeniser and labels (longtail.export.onnx)
push(folder, repository)       a saved model with its card (longtail.export.hub)
pull(repository, folder)       the same back, pinned and verified
"""
