"""Apache TVM (relax) as a target. `pip install apache-tvm tflite`; run with that environment's Python."""

import tflite
import tvm
from serving import serve
from tvm import relax
from tvm.relax.frontend.tflite import from_tflite


def load(path):
    """Import a model, compile it for this processor, and load it."""
    with open(path, "rb") as file:
        model = tflite.Model.GetRootAsModel(file.read(), 0)
    module = from_tflite(model)
    module = relax.transform.DecomposeOpsForInference()(module)
    compiled = tvm.compile(module, target="llvm")
    machine = relax.VirtualMachine(compiled, tvm.cpu())

    def run(inputs):
        result = machine["main"](*[tvm.runtime.tensor(value) for value in inputs])
        results = result if not hasattr(result, "numpy") else [result]
        return [value.numpy() for value in results]

    return run


if __name__ == "__main__":
    serve(load)
