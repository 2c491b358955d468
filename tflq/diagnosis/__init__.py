"""Compare a device's dump with a profile: where they differ, the cause, and the consequences."""
