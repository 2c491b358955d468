"""Integer products on the integer units: small loops over registers, described as data and emitted as LLVM code.

A *form* (`forms`) says how a processor multiplies and adds: width of a register, type of the operands, instruction.
`emission` writes the loop of one form, and the roundings (`roundings`) of an output stage behind it, as LLVM vector
code; `tiles` hands it to numba. `packing` lays out weights and constants once, `driving` walks over rows and columns,
and `product` joins it all. Every sum is the true one modulo 2**32: nothing here saturates.
"""
