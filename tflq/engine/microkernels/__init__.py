"""Integer products on the integer units: small loops over registers, described as data and emitted as LLVM code.

A *form* (`kernel.FORMS`) describes how a processor multiplies and adds: width of a register, type of the operands,
instruction. `emission` writes a kernel, its loop and the steps of an output stage behind it, as LLVM vector code, which
compiled code calls by its address (`kernel.TileFunction`). `product` lays out weights and constants once and loops over
rows and columns; `taps`, `sums` and `floats` do so for their families. Every sum is the true one modulo 2**32: nothing
here saturates.
"""
