# PyTorch 2.11, as far as compute.py goes.
import os

from matrix import Matrix

__version__ = "2.11.0+cu128"


class FloatTensor:
    def __init__(self, rows):
        self.rows = rows

    def cuda(self, i):
        return Matrix(self.rows)


def mm(left, right):
    return left.product(right)


class cuda:
    class device:
        def __init__(self, i):
            assert i == 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    @staticmethod
    def device_count():
        return int(os.environ.get("CARDS", "1"))

    @staticmethod
    def get_device_name(i):
        return "Tesla T4"

    @staticmethod
    def synchronize():
        pass
