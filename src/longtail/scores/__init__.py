"""Steps that change a model's ranked lists after the method made them, each `TopK` → `TopK`."""
