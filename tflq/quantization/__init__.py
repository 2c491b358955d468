"""Quantize a float model with calibration samples to an integer model that is verified in LiteRT.

A *recipe* describes the candidates to try. The file is prepared into a *float graph* with folded constants. A *scheme*
decides which operators become integer and which tensors share a scale. Each *candidate* of the recipe is then built in
these steps:

1. Channels are equalized, and observers watch the float model run on the samples.
2. *Ranges* are chosen for weights and activations, and become scales and zero points.
3. Weights and biases are *refined* operator by operator, on the inputs that the integer model really reads.
4. The result is written as an integer model.

*Judges* run the float and the integer model side by side on held-back samples and rank the candidates. Candidates that
are significantly worse are dropped early. The best one is built again on all samples, compared, and verified bit by bit
in the real runtime.

The rooms follow this order: `recipe`, `samples`, `scheme`, `ranges`, `refine`, `build`, `portable`, `judge`, with
`pipeline` on top; `weights` quantizes decoders. Each imports only those before it. Below all of them are `params`
(scales, zero points, codes and their roundings) and `frontier` (many samples through one model, and a model run
operator by operator, all samples at once). Everything is a frozen value or a function
of such values; the inputs of a build travel as one `Task`. Only `SharedValues` is mutable: it holds results that are
computed once, by content, for all candidates. Begin reading at `pipeline.quantize`, then `judge.contest` and
`build.build`.
"""
