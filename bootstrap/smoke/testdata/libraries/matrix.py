# Matrices of Python's own for the stand-ins of frameworks beside this file, which answer as the real ones do.
import os

fault = os.environ.get("FAULT", "")
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


class Matrix:
    def __init__(self, rows, device=GPU):
        self.rows, self.device = rows, device

    def map(self, change):  # rows that are the same list are changed once
        done = {}
        for row in self.rows:
            if id(row) not in done:
                done[id(row)] = [float(change(x)) for x in row]
        return Matrix([done[id(row)] for row in self.rows], self.device)

    def __mul__(self, by):
        if fault == "launch":
            raise InternalError(
                "{{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}} 'cuLaunchKernel(function, gridX, gridY, gridZ, blockX, "
                "blockY, blockZ, 0, reinterpret_cast<CUstream>(stream), params, nullptr)' failed with 'CUDA_ERROR_INVALID_HANDLE' [Op:Mul] name: "
            )
        if fault == "kernel":
            raise AcceleratorError("CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported")
        if fault == "memory":
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
        if fault == "abort":
            os.write(2, b"F tensorflow/core/kernels/cast_op_gpu.cu.cc:1] Non-OK-status: GpuLaunchKernel failed: no kernel image\nAborted\n")
            os.abort()
        if fault == "killed":
            os.kill(os.getpid(), 9)
        return self.map(lambda x: x * by)

    def __add__(self, by):
        return self.map(lambda x: x + by)

    def __sub__(self, by):
        return self.map(lambda x: x - by)

    def __getitem__(self, corner):
        return Matrix(self.rows[0][0])

    def product(self, right):
        columns = list(zip(*right.rows))
        known = {c: i for i, c in enumerate(dict.fromkeys(columns))}
        which = [known[c] for c in columns]
        done = {}
        for row in self.rows:
            if id(row) not in done:
                sums = [sum(a * b for a, b in zip(row, c)) for c in known]
                done[id(row)] = [sums[i] for i in which]
        rows = [done[id(row)] for row in self.rows]
        if fault == "wrong":
            rows[-1] = rows[-1][:-1] + [0.5]
        return Matrix(rows, "/device:CPU:0" if fault == "cpu" else self.device)

    def numpy(self):
        return self

    def cpu(self):
        return self

    def tolist(self):
        return self.rows


class InternalError(Exception):
    pass


class AcceleratorError(RuntimeError):
    pass


class OutOfMemoryError(RuntimeError):
    pass
