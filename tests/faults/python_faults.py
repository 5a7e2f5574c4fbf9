# SPDX-License-Identifier: Apache-2.0
"""Python programs, without any package."""

import corpus

python = corpus.group("python")


def add(title, program, kind="python_exception", line="", **rest):
    python(title, program, kind, line, language="py", **rest)


add(
    "an exception",
    'print("step 1")\nraise ValueError("loss is NaN")',
    line="ValueError: loss is NaN",
)
add(
    "an exception of a module of its own",
    """
import json
json.loads("{'lr': 0.1}")
    """,
    line="json.decoder.JSONDecodeError: Expecting property name",
)
add("an assertion", "assert 2 + 2 == 5, 'odd world'", line="AssertionError: odd world")
add("an assertion without words", "def check(n): assert n\ncheck(0)", line="AssertionError")
add(
    "a chain of exceptions",
    """
try:
    {}["lr"]
except KeyError as e:
    raise RuntimeError("bad config") from e
    """,
    line="RuntimeError: bad config",
)
add(
    "an exception while another is handled",
    """
try:
    open("/nowhere/model.pt")
except OSError:
    raise TypeError("no fallback model")
    """,
    line="TypeError: no fallback model",
)
add(
    "a group of exceptions",
    """
raise ExceptionGroup("2 shards failed", [ValueError("shard 3"), OSError("shard 7")])
    """,
    line="ValueError: shard 3",
)
add(
    "an exception in a thread, then exit 1",
    """
import sys, threading
failed = []
def load():
    try:
        raise LookupError("tokenizer is missing")
    except LookupError:
        failed.append(1)
        raise
t = threading.Thread(target=load)
t.start(); t.join()
sys.exit(1 if failed else 0)
    """,
    line="LookupError: tokenizer is missing",
)
add(
    "an exception in a task of asyncio",
    """
import asyncio
async def fetch():
    await asyncio.sleep(0.01)
    raise TimeoutError("shard server did not answer")
async def main():
    await asyncio.gather(fetch(), asyncio.sleep(5))
asyncio.run(main())
    """,
    line="TimeoutError: shard server did not answer",
)
add(
    "an exception in a process of a pool",
    """
import multiprocessing
def work(n):
    return 1 / n
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        pool.map(work, [2, 1, 0])
    """,
    line="ZeroDivisionError: division by zero",
)
add("recursion without end", "def f(n): return f(n + 1)\nf(0)", line="RecursionError: maximum")
add(
    "a message of several lines",
    'raise RuntimeError("size mismatch:\\n  weight: [3, 4]\\n  bias: [3]")',
    line="RuntimeError: size mismatch:",
)
add(
    "a message of 20,000 characters",
    'raise ValueError("bad token " + "x" * 20000)',
    line="ValueError: bad token xxx",
)
add(
    "a message that is no ASCII",
    'raise ValueError("файл данных пуст: données.csv 数据")',
    line="ValueError: файл данных пуст: données.csv 数据",
    env={"PYTHONIOENCODING": "utf-8"},
)
add(
    "a traceback before much output of atexit",
    """
import atexit, sys
atexit.register(lambda: [print("flushing metric", n, file=sys.stderr) for n in range(20)])
raise KeyError("label")
    """,
    line="KeyError: 'label'",
)
add(
    "a traceback that was survived, then exit 7",
    """
import logging, sys
try:
    raise OSError("retrying")
except OSError:
    logging.exception("first try")
for step in range(100): print("step", step, file=sys.stderr)
print("evaluation: accuracy 0.1 is below 0.5", file=sys.stderr)
sys.exit(7)
    """,
    "exit_code",
    "evaluation: accuracy 0.1 is below 0.5",
)
add("sys.exit with words", 'import sys\nsys.exit("no checkpoint")', "exit_code", "no checkpoint")
add("os._exit", "import os\nos._exit(4)", "exit_code", None)
add("Ctrl-C's exception", "raise KeyboardInterrupt", "interrupted", None)
add("an import of nothing", "import apex_a", "python_import_error", "No module named 'apex_a'")
add(
    "an import of a name that is not there",
    "from os import pathological",
    "python_import_error",
    "ImportError: cannot import name 'pathological' from 'os'",
)
add(
    "an import whose library is missing",
    """
import importlib.machinery, importlib.util, os, shutil
path = os.environ["T"] + "/ext.so"
shutil.copy(os.environ["FAULTS"] + "/libneeds_library.so", path)
loader = importlib.machinery.ExtensionFileLoader("ext", path)
importlib.util.module_from_spec(importlib.util.spec_from_loader("ext", loader))
    """,
    "library_missing",
    "libmuster_nowhere.so: cannot open shared object file",
)
add(
    "a library that ctypes does not find",
    'import ctypes\nctypes.CDLL("libcudart_nowhere.so.12")',
    "library_missing",
    "OSError: libcudart_nowhere.so.12: cannot open shared object file",
)
add("a syntax error", "def f(:\n  pass", "python_syntax_error", "SyntaxError: ", rank=0, ranks=1)
add(
    "an indentation error in a module",
    """
import os, sys
with open(os.environ["T"] + "/model.py", "w") as file:
    file.write("def f():\\nreturn 1\\n")
sys.path.insert(0, os.environ["T"])
import model
    """,
    "python_syntax_error",
    "IndentationError: expected an indented block",
)
python(
    "no such script",
    "/usr/bin/python3 {T}/nowhere.py",
    "script_not_found",
    "can't open file",
    language="command",
    ranks=1,
    rank=0,
)
python(
    "no such module",
    "/usr/bin/python3 -m nowhere_train",
    "python_import_error",
    "No module named nowhere_train",
    language="command",
    ranks=1,
    rank=0,
)
add(
    "no memory left",
    """
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
b = bytearray(1 << 30)
    """,
    "memory_error",
    "MemoryError",
)
add(
    "the disk is full",
    """
import os
with open(os.environ["T"] + "/small/model.pt", "wb") as file:
    file.write(bytes(1 << 20))
    """,
    "disk_full",
    "OSError: [Errno 28] No space left on device",
    needs="root, tmpfs",
)
add(
    "too many open files",
    """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
files = [open("/dev/null") for _ in range(30)]
    """,
    "fd_limit",
    "OSError: [Errno 24] Too many open files: '/dev/null'",
)
add(
    "an address in use",
    """
import socket
first = socket.create_server(("127.0.0.1", 0))
socket.create_server(first.getsockname())
    """,
    "address_in_use",
    "OSError: [Errno 98] Address already in use",
)
add(
    "a name that nobody knows",
    'import socket\nsocket.create_connection(("storage.nowhere.invalid", 80))',
    "name_resolution",
    "socket.gaierror: [Errno -",
)
add(
    "a connection that nobody takes",
    'import socket\nsocket.create_connection(("127.0.0.1", 1))',
    "connection_lost",
    "ConnectionRefusedError: [Errno 111] Connection refused",
    waits=True,
)
add(
    "a URL whose server is not there",
    'import urllib.request\nurllib.request.urlopen("http://127.0.0.1:1/shard.tar")',
    "connection_lost",
    "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>",
    waits=True,
)
add(
    "no right to write",
    """
import os
os.chmod(os.environ["T"], 0o755)
os.setuid(65534)
open("/etc/model.pt", "w")
    """,
    "permission_denied",
    "PermissionError: [Errno 13] Permission denied: '/etc/model.pt'",
    needs="root",
)
add(
    "a segfault with faulthandler on",
    "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.string_at(8)",
    "segfault",
    "train.py\", line 5 in <module>",
)
add(
    "an abort of the interpreter",
    "import ctypes, faulthandler\nfaulthandler.enable()\nctypes.CDLL(None).abort()",
    "abort",
    "train.py\", line 5 in <module>",
)
add(
    "a command that fails",
    """
import subprocess
subprocess.run(["sh", "-c", "echo tar: short read >&2; exit 2"], check=True)
    """,
    line="subprocess.CalledProcessError: Command '['sh', '-c',",
)
add(
    "an error file beside the traceback",
    """
import json, os
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    more = {"py_callstack": "Traceback\\n  x\\nValueError: bad shard 17", "timestamp": "1"}
    json.dump({"message": {"message": "ValueError: bad shard 17", "extraInfo": more}}, file)
raise ValueError("bad shard 17")
    """,
    line="ValueError: bad shard 17",
)
add(
    "an error file that is no JSON",
    """
import os
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    file.write('{"message": {"mess')
raise ValueError("bad shard 18")
    """,
    line="ValueError: bad shard 18",
)
add(
    "stderr closed before the exception",
    "import os\nprint('fatal: no GPU memory plan', flush=True)\nos.close(2)\nos._exit(5)",
    "exit_code",
    "fatal: no GPU memory plan",
)
add(
    "the pool's process is killed",
    """
import concurrent.futures, os, signal
def work(n):
    os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(work, 1).result()
    """,
    line="concurrent.futures.process.BrokenProcessPool: A process in the process pool was",
)
