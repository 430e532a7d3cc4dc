# TensorFlow 2.17, as far as compute.py goes.
from contextlib import contextmanager

from matrix import Matrix

__version__ = "2.17.0"
float32 = "float32"


class Listed:
    def __init__(self, name):
        self.name = name


class config:
    @staticmethod
    def list_physical_devices():
        return [Listed("/physical_device:CPU:0"), Listed("/physical_device:GPU:0")]

    class experimental:
        @staticmethod
        def get_device_details(device):
            if "GPU" not in device.name:
                raise ValueError("not a GPU")
            return {"device_name": "Tesla T4", "compute_capability": (7, 5)}


@contextmanager
def device(place):
    assert place == "/gpu:0", place
    yield


def constant(rows, kind):
    return Matrix(rows)


def matmul(left, right):
    return left.product(right)
