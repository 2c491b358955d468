"""The bench on which a device, a compiler or a release is held against a profile: suites, targets, verdicts."""
