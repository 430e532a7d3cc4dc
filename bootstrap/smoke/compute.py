# Multiplies matrices on every GPU that the library named by the first argument lists. It runs on Python 3.5 and later, in a
# process of its own: a library that meets a card it has no code for may end its process, and one that is left gives the
# card's memory back. It prints a line each:
#   kgpu-version LIBRARY VERSION             of the library
#   kgpu-device LIBRARY NAME                 of a device, with the card's name where the library knows it
#   kgpu-computed LIBRARY N MICROSECONDS     the device that came as number N, from 0, computes, and takes so long when it
#                                            has done so before: the best of five times
#   kgpu-failed LIBRARY N WHY                it does not compute
#   kgpu-busy LIBRARY N WHY                  it has no memory left for this: somebody else computes on it
#   kgpu-tried LIBRARY WHY                   there is no GPU
import os
import sys
import time

# The matrices are of small whole numbers, so that the product is known, and exact in every format that cards multiply in
# (elements are less than 2**24). The library's own code changes both on the card before they are multiplied: the product is
# the work of cuBLAS, which has code for cards that the library has none for.
SIZE = 1024
LEFT = [[(i + k) % 7 for k in range(SIZE)] for i in range(7)]
RIGHT = [[(2 * k + j) % 5 for j in range(SIZE)] for k in range(5)]
LEFT, RIGHT = [LEFT[i % 7] for i in range(SIZE)], [RIGHT[k % 5] for k in range(SIZE)]


def change(left, right):
    return left * 2 + 1, right - 2


def product_is_right(product):
    sums = [[sum((LEFT[i][k] * 2 + 1) * (RIGHT[k][j] - 2) for k in range(SIZE)) for j in range(5)] for i in range(7)]
    rows = [[sums[i][j % 5] for j in range(SIZE)] for i in range(7)]
    return len(product) == SIZE and all(row == rows[i % 7] for i, row in enumerate(product))


def tell(mark, *words):
    text = " ".join(" ".join(str(w) for w in words).split())
    print("kgpu-" + mark + " " + text[:600].encode("ascii", "replace").decode(), flush=True)


def check(product):
    if not product_is_right(product):
        raise ValueError("the product is wrong")


# Each library is a function that returns its version, the names of its devices, which of them are GPUs, and a function that
# prepares one of these. That returns two others: one computes and raises where the result is wrong, and one computes the same
# again, and ends when the card has.


def tensorflow():
    os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # else it takes all of the card's memory from those at work
    import tensorflow as tf

    config = None
    if hasattr(tf, "Session"):  # before 2.0
        config = tf.ConfigProto()
        config.gpu_options.allow_growth = True  # before 1.14
    try:
        listed = [(d.name, card_of(tf, d)) for d in tf.config.list_physical_devices()]
    except AttributeError:  # before 2.1
        from tensorflow.python.client import device_lib

        local = device_lib.list_local_devices(*([config] if config else []))
        listed = [(d.name, d.physical_device_desc.partition("name: ")[2].partition(",")[0]) for d in local]

    def eager(place):
        def multiply():
            product = tf.matmul(*change(left, right))
            if "GPU:" not in product.device:
                raise RuntimeError("it was computed on " + product.device)
            return product

        def prove():
            with tf.device(place):
                check(multiply().numpy().tolist())

        def again():
            with tf.device(place):
                multiply()[0, 0].numpy()

        with tf.device(place):
            left, right = tf.constant(LEFT, tf.float32), tf.constant(RIGHT, tf.float32)
        return prove, again

    def graph(place):
        with tf.device(place):  # variables: a product of constants might be known before a card is asked
            left, right = tf.Variable(tf.constant(LEFT, tf.float32)), tf.Variable(tf.constant(RIGHT, tf.float32))
            product = tf.matmul(*change(left, right))
            corner = product[0, 0]
        session = tf.Session(config=config)
        session.run([left.initializer, right.initializer])
        return lambda: check(session.run(product).tolist()), lambda: session.run(corner)

    def prepare(i):
        place = "/gpu:" + listed[i][0].rpartition(":")[2]
        return graph(place) if config else eager(place)

    gpus = [i for i, (name, _) in enumerate(listed) if is_gpu(name)]
    return tf.__version__, [(name + " " + card).strip() for name, card in listed], gpus, prepare


def is_gpu(name):  # of TensorFlow; XLA_GPU is another view of the same card
    return name.lower().rpartition(":")[0].endswith(("/gpu", ":gpu"))


def card_of(tf, device):
    try:
        return tf.config.experimental.get_device_details(device).get("device_name", "")
    except Exception:  # it is no GPU, or this version has no such function
        return ""


def pytorch():
    import torch

    def prepare(i):
        def multiply():
            return torch.mm(*change(left, right))

        def again():
            multiply()
            with torch.cuda.device(i - 1):
                torch.cuda.synchronize()

        left, right = torch.FloatTensor(LEFT).cuda(i - 1), torch.FloatTensor(RIGHT).cuda(i - 1)
        return lambda: check(multiply().cpu().tolist()), again

    names = ["cuda:%d %s" % (i, torch.cuda.get_device_name(i)) for i in range(torch.cuda.device_count())]
    return torch.__version__, ["cpu"] + names, range(1, 1 + len(names)), prepare


# The driver multiplies no matrices: for that it wants code for the card, and a text of kgpu's own that it compiles would prove
# that text more than this notebook, whose image has neither framework because its owner brings code of their own. So the card
# fills memory with a number and gives it back, which fails where the driver lists a card that does not work.
def driver():
    import ctypes

    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status == 2:
            raise MemoryError(name + ": out of memory")
        if status != 0:
            raise RuntimeError("%s returns %d" % (name, status))

    def prepare(i):
        device, context, memory = ctypes.c_int(0), ctypes.c_void_p(), ctypes.c_uint64(0)
        words, size = (ctypes.c_uint32 * SIZE**2)(), ctypes.c_size_t(4 * SIZE**2)
        call("cuDeviceGet", ctypes.byref(device), i)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        call("cuMemAlloc_v2", ctypes.byref(memory), size)

        def fill(number):
            call("cuMemsetD32_v2", memory, ctypes.c_uint32(number), ctypes.c_size_t(SIZE**2))
            call("cuMemcpyDtoH_v2", words, memory, size)

        def prove():
            fill(0x6B677075)
            if any(word != 0x6B677075 for word in words):
                raise ValueError("the card's memory is not what was written there")

        return prove, lambda: fill(0)

    version, count = ctypes.c_int(0), ctypes.c_int(0)
    call("cuInit", 0)
    call("cuDriverGetVersion", ctypes.byref(version))
    call("cuDeviceGetCount", ctypes.byref(count))
    names = []
    for i in range(count.value):
        device, text = ctypes.c_int(0), ctypes.create_string_buffer(256)
        call("cuDeviceGet", ctypes.byref(device), i)
        call("cuDeviceGetName", text, len(text), device)
        names.append("cuda:%d %s" % (i, text.value.decode("utf-8", "replace")))
    return "%d.%d" % (version.value // 1000, version.value % 1000 // 10), names, range(len(names)), prepare


def words_of(e):
    return type(e).__name__ + ": " + str(e)


def is_full(e):
    text = words_of(e).lower().replace("_", " ")
    return any(sign in text for sign in ("out of memory", "resourceexhausted", "cublas status alloc failed"))


def main(library):
    try:
        version, names, gpus, prepare = {"TensorFlow": tensorflow, "PyTorch": pytorch, "CUDA": driver}[library]()
    except Exception as e:
        return tell("tried", library, words_of(e))
    if not gpus:
        return tell("tried", library, "finds no GPU, only", ", ".join(names) or "nothing")
    tell("version", library, "".join(str(version).split()))
    for name in names:
        tell("device", library, name)
    for i in gpus:
        try:
            prove, again = prepare(i)
            prove()
            best = None
            for _ in range(5):
                begin = time.perf_counter()
                again()
                took = time.perf_counter() - begin
                best = took if best is None else min(best, took)
        except Exception as e:
            tell("busy" if is_full(e) else "failed", library, i, words_of(e))
        else:
            tell("computed", library, i, int(best * 1e6))


main(sys.argv[1])
