"""What an unknown runtime computes: suites of cases, targets, and arithmetic learned by questions."""
