"""One model in many real runtimes, on inputs that bring accumulators to the codes' thresholds: see tools/agree.py."""
