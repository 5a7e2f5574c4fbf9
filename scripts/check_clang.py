# SPDX-License-Identifier: Apache-2.0
"""check_clang.py BUILD_DIR [FILE...]: our code must also be clean with Clang and clang-tidy.

Takes the commands of BUILD_DIR/compile_commands.json. What a file says after preprocessing decides
whether it has to be looked at again, so that a second call is quick.
"""

import concurrent.futures
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLANG, TIDY = "clang++-14", "clang-tidy-14"
TIDIED = ("src/", "bench/")


def clang_command(entry):
    words = shlex.split(entry["command"])
    while os.path.basename(words[0]) == "ccache":
        del words[0]
    words[0] = CLANG
    for option in ("-o", "-c"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    # GCC's own options and warnings are none of Clang's business.
    foreign = ["-Wno-unused-command-line-argument", "-Wno-unknown-warning-option"]
    return words + foreign + [entry["file"]]


def check(build_dir, entry):
    """Returns what is wrong with a file, as text."""
    command = clang_command(entry)
    options = {"cwd": entry["directory"], "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    text = subprocess.run(command + ["-E", "-P"], **options).stdout
    with open(os.path.join(TOP, ".clang-tidy"), "rb") as file:
        name = hashlib.sha256(text + file.read() + repr(command).encode()).hexdigest()
    stamp = os.path.join(build_dir, "clang_checked", name)
    if os.path.exists(stamp):
        return ""

    done = subprocess.run(command + ["-fsyntax-only"], **options)
    said = done.stdout.decode(errors="replace") if done.returncode else ""
    if os.path.relpath(entry["file"], TOP).startswith(TIDIED):
        done = subprocess.run([TIDY, "--quiet", entry["file"], "--", *command[1:-1]], **options)
        if done.returncode:
            said += done.stdout.decode(errors="replace")
    if not said:
        open(stamp, "w").close()
    return said


def main():
    build_dir = os.path.abspath(sys.argv[1])
    only = [os.path.abspath(path) for path in sys.argv[2:]]
    missing = [tool for tool in (CLANG, TIDY) if not shutil.which(tool)]
    if missing:
        print("SKIPPED:", ", ".join(missing), "not installed")
        return 77
    os.makedirs(os.path.join(build_dir, "clang_checked"), exist_ok=True)
    with open(os.path.join(build_dir, "compile_commands.json")) as file:
        entries = [entry for entry in json.load(file) if entry["file"].endswith(".cc")]
    entries = [entry for entry in entries if not only or entry["file"] in only]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = list(pool.map(lambda entry: check(build_dir, entry), entries))
    for said in filter(None, findings):
        print(said)
    print(f"{len(entries)} files, {sum(map(bool, findings))} with findings")
    return 1 if any(findings) else 0


sys.exit(main())
