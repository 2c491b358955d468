"""Rewrites that keep a model's function and leave it to operators on which all runtimes agree.

| operator | becomes |
|---|---|
| ADD, SUB, MUL, DIV by a constant behind a convolution | part of its weights and bias |
| MUL, DIV by one number for each channel | DEPTHWISE_CONV_2D |
| MEAN, SUM over neighbouring axes; AVERAGE_POOL_2D | DEPTHWISE_CONV_2D with equal weights, or AVERAGE_POOL_2D |
| RESIZE_BILINEAR by whole factors | RESIZE_NEAREST_NEIGHBOR, MIRROR_PAD, DEPTHWISE_CONV_2D |
| SHAPE and what computes with it | constants |
| PRELU, LEAKY_RELU | MAXIMUM of two products, or a sum of two halves |
| SQUARED_DIFFERENCE, DIV of activations | SUB and a table, MUL with a table |
| a chain of pointwise operators on one tensor | a table of 256 entries: CAST, ADD, GATHER |
| an operand of MUL | a table without codes that give ties |
| SOFTMAX at the end | stays; with `drop_softmax`, nothing |

`floats` rewrites the float model, `tables` the integer model, and `obstacles` names what has no form.
"""
