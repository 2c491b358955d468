"""Small operators, their proofs under pairs of profiles, and a search for inputs that contradict these proofs."""
