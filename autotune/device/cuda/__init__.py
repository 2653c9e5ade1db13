"""One NVIDIA GPU, by PyCUDA and NVIDIA's bindings."""
