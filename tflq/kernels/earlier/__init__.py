"""Operators that releases up to 2.14 computed in their own way, whatever the resolver."""
