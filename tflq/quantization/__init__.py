"""From a float model and calibration samples to an integer model that is verified in LiteRT.

A *recipe* says what is tried. The float file is prepared into a *float graph* whose constants are folded, and a
*scheme* decides which operators become integer and which tensors share a scale. Each *candidate* of the recipe is then
built: channels are equalized, observers watch the float model run on the samples, *ranges* are chosen for weights and
activations and become scales and zero points, weights and biases are *refined* one operator after another on what the
integer model really reads, and all of it is written as an integer model. *Judges* run float and integer model side by
side on samples that were held back and rank the candidates, who race: those surely behind leave early. The best one is
built again on all samples, compared, and verified bit by bit in the real runtime.

The folders follow that way: `recipe`, `calibration`, `scheme`, `ranges`, `refine`, `build`, `judge`, with `pipeline` on
top; each imports only those before it. Below all of them lie `params` (scales, zero points, codes and their roundings),
`runner` (many samples through one model), `frontier` (a model walked operator by operator, all samples at once) and
`integer_model`. Everything is a frozen value or a function of such values; what a build needs travels as one `Task`.
The one thing that grows is `shared`: what was computed once, by content, for all candidates. Begin reading at
`pipeline.quantize`, then `judge.contest` and `build.build`.
"""
