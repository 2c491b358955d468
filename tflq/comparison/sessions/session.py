"""A session: one model run step by step, with its state carried over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflq.comparison.sessions.roles import Decoder, decoder_of
from tflq.comparison.sessions.script import decoder_steps, initial
from tflq.engine.api.files import Source
from tflq.engine.api.steps import Stepper
from tflq.engine.api.subject import subject
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Step
from tflq.errors import InputError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType
from tflq.model.ir.signatures import only_root, signature_of
from tflq.typing import Array


class Session:
    """A model under a profile, run step by step. Outputs feed the inputs of the same names in the steps that follow.

    `tokens` are those that a decoder has read, `outputs` the latest output of every name.

    Example:
        >>> session = tflq.Session("golden/models/tiny_decoder_int8.tflite")
        >>> session.feed([72, 101, 108, 108, 111, 32, 119, 111, 114, 108]).shape
        (128,)
        >>> len(session.generate(3))
        3
    """

    def __init__(self, model: Source | Model, profile: str | Profile = "litert-ref") -> None:
        """Load a model: a path, the bytes of a file, or a Model."""
        self._model = subject(model).model
        self._stepper = Stepper(self._model, profile)
        self._decoder: Decoder | None = None
        self.tokens: list[int] = []

    @property
    def outputs(self) -> dict[str, Array]:
        """The latest output of every name."""
        return dict(self._stepper.latest)

    @property
    def decoder(self) -> Decoder:
        """The roles of a decoder's inputs and outputs. Raises InputError if the model is not one."""
        if self._decoder is None:
            self._decoder = decoder_of(self._model)
        if self._decoder is None:
            raise InputError("the model is not a decoder: no signature takes one token and returns logits")
        return self._decoder

    def step(self, signature: str | None = None, **inputs: Any) -> dict[str, Array]:
        """Run one step and return its outputs.

        Inputs that are not given take the latest output of the same name; before there is one, they are empty.

        Raises:
            UnknownNameError: The model has no such signature, or the signature no such input.
            InputError: An input is missing, or does not fit.
        """
        root = only_root(self._model, signature)
        named = signature_of(self._model, root)
        specs = {} if named is None else {n: self._model.subgraphs[root.subgraph].tensors[t] for n, t in named.inputs}
        outputs = () if named is None else [name for name, _ in named.outputs]
        given = {name: _array(value, specs.get(name)) for name, value in inputs.items()}
        missing = [name for name in specs if name not in given and name in outputs]
        latest = self._stepper.latest
        given |= {name: initial(specs[name]) for name in missing if name not in latest}
        carried = tuple(name for name in missing if name in latest)
        return dict(self._stepper.run(Step(root.signature, given, carried)).outputs)

    def feed(self, tokens: Sequence[int]) -> Array:
        """Read tokens after those read before; return the logits of the last, of shape [vocabulary].

        Raises:
            InputError: The model is not a decoder, or a token or the number of positions does not fit.
        """
        logits: Array | None = None
        for _, step in decoder_steps(self.decoder, tokens, (), 1, begin=len(self.tokens)):
            result = self._stepper.run(step)
            if step.signature == self.decoder.decode.signature:
                logits = result.outputs[str(self.decoder.decode.logits)]
        assert logits is not None  # the last step is one of decode
        self.tokens += map(int, tokens)
        last: Array = logits.reshape(-1, logits.shape[-1])[-1]
        return last

    def generate(self, count: int) -> list[int]:
        """Return the next tokens, each the one with the greatest logit.

        Raises:
            InputError: No token was read before, or there are no positions left.
        """
        if not self.tokens:
            raise InputError("feed a prompt first: there is no token to continue")
        chosen: list[int] = []
        for _ in range(count):
            scores = self._stepper.latest[str(self.decoder.decode.logits)]
            token = int(scores.reshape(-1, scores.shape[-1])[-1].argmax())
            chosen.append(token)
            self.feed([token])
        return chosen


def _array(value: Any, spec: TensorSpec | None) -> Array:
    """Return an array; plain numbers and lists take the element type of the input."""
    if isinstance(value, np.ndarray) or spec is None or not isinstance(spec.type, TensorType):
        return np.asarray(value)
    return np.asarray(value, CARRIER[spec.type])
