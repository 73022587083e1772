"""Memory bound to a session: by arrays, by values, by addresses, and outputs whose shape the run decides."""

import numpy as np
import onnxruntime as rt


def main(folder):
    session = rt.InferenceSession(str(folder / "batches.onnx"), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
    found = {}

    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    found["by name"] = binding.copy_outputs_to_cpu()[0]

    x_value = rt.OrtValue.ortvalue_from_numpy(x, "cpu", 0)
    y_value = rt.OrtValue.ortvalue_from_shape_and_type([5, 4], np.float32, "cpu", 0)
    binding = session.io_binding()
    binding.bind_input(name="x", device_type=x_value.device_name(), device_id=0, element_type=np.float32,
                       shape=x_value.shape(), buffer_ptr=x_value.data_ptr())
    binding.bind_output(name="y", device_type="cpu", device_id=0, element_type=np.float32, shape=y_value.shape(),
                        buffer_ptr=y_value.data_ptr())
    session.run_with_iobinding(binding)
    found["by address"] = y_value.numpy()

    # A recurrence: what comes out goes in again, and nothing is copied.
    step = rt.InferenceSession(str(folder / "decay.onnx"), providers=["CPUExecutionProvider"])
    values = [rt.OrtValue.ortvalue_from_numpy(np.ones((2, 3), np.float32)), rt.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)]
    binding = step.io_binding()
    for turn in range(7):
        binding.bind_ortvalue_input("h", values[turn % 2])
        binding.bind_ortvalue_output("next", values[1 - turn % 2])
        binding.synchronize_inputs()
        step.run_with_iobinding(binding)
        binding.synchronize_outputs()
    found["recurrence"] = values[1].numpy()

    binding.clear_binding_inputs()
    binding.clear_binding_outputs()
    positions = rt.InferenceSession(str(folder / "positions.onnx"), providers=["CPUExecutionProvider"])
    binding = positions.io_binding()
    for turn in (1, 3):
        binding.bind_output("found", "cpu")
        binding.bind_cpu_input("x", (np.arange(12, dtype=np.float32) % (turn + 1)).reshape(3, 4))
        positions.run_with_iobinding(binding)
        (value,) = binding.get_outputs()
        found[f"positions {turn}"] = value.numpy()
        found[f"about {turn}"] = np.array([*value.shape(), value.is_tensor(), value.data_type() == "tensor(int64)"])
    return found
