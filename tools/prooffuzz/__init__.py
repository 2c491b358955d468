"""Small operators, proofs of them under pairs of profiles, and a search for inputs that contradict these proofs."""
