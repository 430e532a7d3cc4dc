# TensorFlow 1.13, as far as compute.py goes: nothing is computed but by a session, on variables that it has initialized.
from contextlib import contextmanager

from matrix import Matrix

__version__ = "1.13.1"
float32 = "float32"


class config:
    class experimental:
        pass


class ConfigProto:
    class gpu_options:
        allow_growth = False


class Node:
    def __init__(self, compute):
        self.compute = compute

    def __mul__(self, by):
        return Node(lambda: self.compute() * by)

    def __add__(self, by):
        return Node(lambda: self.compute() + by)

    def __sub__(self, by):
        return Node(lambda: self.compute() - by)

    def __getitem__(self, corner):
        return Node(lambda: self.compute()[corner])


class Variable(Node):
    def __init__(self, initial):
        self.value = None
        self.initializer = Node(lambda: setattr(self, "value", initial.compute()))

    def compute(self):
        assert self.value, "Attempting to use uninitialized value"
        return self.value


class Session:
    def __init__(self, config):
        assert config.gpu_options.allow_growth

    def run(self, nodes):
        if isinstance(nodes, list):
            return [n.compute() for n in nodes]
        return nodes.compute()


@contextmanager
def device(place):
    assert place == "/gpu:0", place
    yield


def constant(rows, kind):
    return Node(lambda: Matrix(rows))


def matmul(left, right):
    return Node(lambda: left.compute().product(right.compute()))
