#!/usr/bin/env python3
"""Runs a test program once per instruction set level of this machine, by LIULI_ISA.

Usage: every_isa_test.py LIULI MODEL.gguf PROGRAM [ARGUMENTS…]   (LIULI tells which levels there are)
"""
import json
import os
import subprocess
import sys


def main():
    liuli, model, *command = sys.argv[1:]
    plan = subprocess.run([liuli, "plan", model, "--json"], capture_output=True, text=True, check=True)
    levels = json.loads(plan.stdout)["available_isas"]
    failed = []
    for level in levels:
        run = subprocess.run(command, env={**os.environ, "LIULI_ISA": level}, capture_output=True, text=True, check=False)
        print(f"{level}: {run.stdout.strip().splitlines()[-1] if run.stdout.strip() else run.stderr.strip()}")
        if run.returncode != 0:
            print(run.stdout, run.stderr)
            failed.append(level)
    if "scalar" not in levels or failed:
        sys.exit(f"failed: {failed or 'no scalar level'}")


if __name__ == "__main__":
    main()
