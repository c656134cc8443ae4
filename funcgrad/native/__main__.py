"""``python -m funcgrad.native``: compiles the kernels now, so that the first process already has them."""

from funcgrad.native.build import build

if __name__ == "__main__":
    print(build())
