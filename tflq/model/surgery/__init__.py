"""Transform models: cut out parts, tap tensors, edit and crop operators."""
