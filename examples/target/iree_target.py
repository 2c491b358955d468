"""IREE over the converter to TOSA as a target. Run with the Python of an environment that has the packages.

`pip install iree-base-compiler iree-base-runtime tosa-converter-for-tflite tosa-tools`.
"""

import os
import shutil
import subprocess
import sys
import tempfile

import iree.runtime as rt
from serving import serve

BIN = os.path.dirname(sys.executable)


def _tool(name):
    return shutil.which(name, path=BIN + os.pathsep + os.environ["PATH"]) or name


def _call(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(words[0])}: {(done.stderr or done.stdout).strip()[:200]}")
    return done


def load(path):
    """Convert a model to TOSA, compile it for this processor, and load it."""
    with tempfile.TemporaryDirectory() as folder:
        text, binary = (os.path.join(folder, name) for name in ("model.mlir", "model.vmfb"))
        _convert(path, text)
        flags = ["--iree-input-type=tosa", "--iree-hal-target-device=local"]
        flags += ["--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]
        _call(_tool("iree-compile"), *flags, text, "-o", binary)
        with open(binary, "rb") as file:
            data = file.read()
    config = rt.Config("local-sync")
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, data), config)

    def run(inputs):
        result = module["main"](*inputs)
        results = result if isinstance(result, (tuple, list)) else [result]
        return [value.to_host() for value in results]

    return run


def _convert(path, text):
    bytecode = text + ".bc"
    _call(_tool("tosa-converter-for-tflite"), path, "-o", bytecode, "--bytecode")
    done = _call(_tool("tosa-opt"), "--mlir-print-op-generic", bytecode)
    with open(text, "w") as file:
        file.write(done.stdout)


if __name__ == "__main__":
    serve(load)
