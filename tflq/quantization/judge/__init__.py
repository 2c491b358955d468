"""How good an integer model is: compared, selected, spared where it is sensitive, checked in a runtime."""
