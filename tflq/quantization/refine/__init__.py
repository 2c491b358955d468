"""What makes an integer model better once its ranges are known: factors, biases, roundings."""
