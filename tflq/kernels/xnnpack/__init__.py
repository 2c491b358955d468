"""Operators that LiteRT hands to XNNPACK, and the rule by which it does; all others run as without it."""
