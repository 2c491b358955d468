"""Unknown runtimes: suites of cases, targets, and arithmetic that is learned by questions."""
