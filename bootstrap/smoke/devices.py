# Has the libraries of this notebook compute, one after the other until one does: TensorFlow, PyTorch, and the driver itself
# where no framework lists a GPU. code is compute.py's text, whose lines are passed on. Of its own are the lines "kgpu-died
# LIBRARY WHY", where a library ended the process, and "kgpu-card UUID" for each card; the last one is "kgpu-end", unless
# somebody killed the process: then nothing is known. It runs on Python 3.5 and later.
import subprocess
import sys


def tell(mark, text):
    print("kgpu-" + mark + " " + " ".join(str(text).split())[:600], flush=True)


def last_words(text):
    lines = [line for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    return (telling or lines or ["it says nothing"])[-1]


def compute():
    listed = False
    for library in ("TensorFlow", "PyTorch", "CUDA"):
        if listed and library == "CUDA":
            break
        print("trying " + library, flush=True)
        done = subprocess.run([sys.executable, "-c", code, library], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("kgpu-")]
        for line in said:
            print(line, flush=True)
        if done.returncode in (-9, -15):
            print(library + " was killed", flush=True)
            return False
        if done.returncode != 0:
            tell("died", "%s exit status %d: %s" % (library, done.returncode, last_words(done.stderr.decode("utf-8", "replace"))))
        marks = [line.split()[0] for line in said]
        listed = listed or "kgpu-version" in marks
        if done.returncode == 0 and "kgpu-version" in marks and "kgpu-failed" not in marks:
            break
    return True


def cards():
    try:
        listed = subprocess.check_output(["nvidia-smi", "-L"], stderr=subprocess.STDOUT, timeout=60)
        for line in listed.decode("utf-8", "replace").splitlines():
            if "(UUID: " in line:
                tell("card", line.split("(UUID: ")[1].rstrip(") "))
            else:
                tell("tried", "nvidia-smi " + line)
    except Exception as e:
        tell("tried", "nvidia-smi " + type(e).__name__ + ": " + str(e))


if compute():
    cards()
    print("kgpu-end", flush=True)
