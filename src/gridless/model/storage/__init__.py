"""A model in a file: safetensors with a header, and ONNX for programs without torch."""
