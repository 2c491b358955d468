"""Integer products on the integer units: small loops over registers, described as data and emitted as LLVM code.

A *form* (`forms`) describes how a processor multiplies and adds: width of a register, type of the operands,
instruction. `emission` writes the loop of one form, and the roundings (`roundings`) of an output stage behind it, as
LLVM vector code; `tiles` passes it to numba. `packing` lays out weights and constants once, `driving` loops over rows
and columns, and `product` combines them. Every sum is the true one modulo 2**32: nothing here saturates.
"""
