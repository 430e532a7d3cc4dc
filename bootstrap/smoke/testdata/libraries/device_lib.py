# tensorflow.python.client.device_lib of TensorFlow 1.13.
class Listed:
    def __init__(self, name, text):
        self.name, self.physical_device_desc = name, text


def list_local_devices(config=None):
    assert config.gpu_options.allow_growth
    card = "device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"
    return [Listed("/device:CPU:0", ""), Listed("/device:XLA_GPU:0", "device: XLA_GPU device"), Listed("/device:GPU:0", card)]
