"""Evidence that people have: tensors of a run in files of any form."""
