# Lists the devices that a program in this notebook can compute on: by TensorFlow, else by PyTorch, else by the driver
# itself. A line "kgpu-device SOURCE NAME" for each device, "kgpu-tried SOURCE WHY" where there is no GPU, and
# "kgpu-card UUID" for each card. It runs on Python 3.5 and later.
import subprocess


def tell(mark, source, text):
    print("kgpu-" + mark + " " + source + " " + " ".join(str(text).split())[:300], flush=True)


def tensorflow():
    import tensorflow as tf
    try:
        return [d.name for d in tf.config.list_physical_devices()]
    except AttributeError:  # before 2.1
        from tensorflow.python.client import device_lib
        return [d.name for d in device_lib.list_local_devices()]


def pytorch():
    import torch
    return ["cpu"] + ["cuda:%d %s" % (i, torch.cuda.get_device_name(i)) for i in range(torch.cuda.device_count())]


def driver():
    import ctypes
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            raise RuntimeError("%s returns %d" % (name, status))

    count = ctypes.c_int(0)
    call("cuInit", 0)
    call("cuDeviceGetCount", ctypes.byref(count))
    names = []
    for i in range(count.value):
        device, text = ctypes.c_int(0), ctypes.create_string_buffer(256)
        call("cuDeviceGet", ctypes.byref(device), i)
        call("cuDeviceGetName", text, len(text), device)
        names.append("cuda:%d %s" % (i, text.value.decode("utf-8", "replace")))
    return names


def is_gpu(name):
    return "gpu:" in name.lower() or name.startswith("cuda:")


for source, devices in (("TensorFlow", tensorflow), ("PyTorch", pytorch), ("CUDA", driver)):
    try:
        found = devices()
    except Exception as e:
        tell("tried", source, type(e).__name__ + ": " + str(e))
        continue
    if any(is_gpu(name) for name in found):
        for name in found:
            tell("device", source, name)
        break
    tell("tried", source, "finds no GPU, only " + (", ".join(found) or "nothing"))

try:
    listed = subprocess.check_output(["nvidia-smi", "-L"], stderr=subprocess.STDOUT, timeout=60)
    for line in listed.decode("utf-8", "replace").splitlines():
        if "(UUID: " in line:
            tell("card", line.split("(UUID: ")[1].rstrip(") "), "")
        else:
            tell("tried", "nvidia-smi", line)
except Exception as e:
    tell("tried", "nvidia-smi", type(e).__name__ + ": " + str(e))
print("kgpu-end", flush=True)
