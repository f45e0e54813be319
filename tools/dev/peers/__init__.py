"""What compare_peers.py measures beside clnet: PyTorch, torch.compile, onnxruntime and OpenVINO."""
